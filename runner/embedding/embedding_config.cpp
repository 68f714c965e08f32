#include "runner/embedding/embedding_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runner/program/validation.h"

namespace mote {
namespace {

using Json = nlohmann::json;

// As sentence-transformers names them.
constexpr std::array<const char*, 6> kPoolings{"mean",        "lasttoken", "cls", "max", "mean_sqrt_len_tokens",
                                               "weightedmean"};

Status invalid_field(const Model& model, const char* field, const std::string& must) {
  return {Code::kInvalidProgram, model.path() + ": embedding: " + field + ": must be " + must};
}

Status read_prompts(const Model& model, const Json& from, EmbeddingConfig& to) {
  const auto prompts = from.find("prompts");
  if (prompts != from.end()) {
    if (!prompts->is_object()) return invalid_field(model, "prompts", "an object of texts");
    for (const auto& [name, text] : prompts->items()) {
      if (!text.is_string()) return invalid_field(model, "prompts", "an object of texts");
      to.prompts.emplace(name, text.get<std::string>());
    }
  }
  const auto standard = from.find("default_prompt_name");
  if (standard == from.end()) return {};
  if (standard->is_string()) to.default_prompt_name = standard->get<std::string>();
  if (!to.prompts.contains(to.default_prompt_name))
    return invalid_field(model, "default_prompt_name", "the name of one of the prompts");
  return {};
}

Status read_pooling(const Model& model, const Json& from, EmbeddingConfig& to) {
  const std::string name = from.contains("pooling") && from["pooling"].is_string() ? from["pooling"] : "";
  const auto found = std::ranges::find(kPoolings, name);
  std::string names;
  for (const char* each : kPoolings) names += (names.empty() ? "" : ", ") + std::string(each);
  if (found == kPoolings.end()) return invalid_field(model, "pooling", "one of " + names);
  to.pooling = static_cast<Pooling>(found - kPoolings.begin());
  if (const auto included = from.find("include_prompt"); included != from.end()) {
    if (!included->is_boolean()) return invalid_field(model, "include_prompt", "true or false");
    to.include_prompt = *included;
  }
  return {};
}

Status read_max_tokens(const Model& model, const Json& from, EmbeddingConfig& to) {
  const int64_t longest = std::min<int64_t>(model.max_position_embeddings(), kMaxTokens);
  to.max_tokens = longest;
  const auto given = from.find("max_tokens");
  if (given == from.end()) return {};
  if (given->is_number_integer()) to.max_tokens = *given;
  if (!given->is_number_integer() || to.max_tokens < 1 || to.max_tokens > longest)
    return invalid_field(model, "max_tokens", "1.." + std::to_string(longest));
  return {};
}

bool is_bidirectional(const fb::Method& method) {
  const auto asks = [](const fb::Attribute* attribute) {
    const bool is_it = text_of(*attribute->name()) == "bidirectional" && attribute->dims() != nullptr;
    return is_it && attribute->dims()->size() == 1 && attribute->dims()->Get(0)->constant() != 0;
  };
  return std::ranges::any_of(*method.instructions(), [&](const fb::Instruction* instruction) {
    return std::ranges::any_of(*instruction->attributes(), asks);
  });
}

}  // namespace

std::string describe(const EmbeddingConfig& config) {
  const Json standard = config.default_prompt_name.empty() ? Json(nullptr) : Json(config.default_prompt_name);
  return Json{{"pooling", kPoolings[static_cast<size_t>(config.pooling)]},
              {"dimensions", config.dimensions},
              {"max_tokens", config.max_tokens},
              {"bidirectional", config.bidirectional},
              {"include_prompt", config.include_prompt},
              {"prompts", config.prompts},
              {"default_prompt_name", standard}}
      .dump();
}

Result<EmbeddingConfig> embedding_config(const Model& model) {
  const auto index = model.bound()->method_index(kEmbed);
  MOTE_REQUIRE(index.ok(), Code::kInvalidArgument,
               "%s has no method that gives embeddings: export the checkpoint with --embed", model.path().c_str());
  const fb::Method& method = model.bound()->method(*index);
  if (model.program().embedding() == nullptr) return invalid_field(model, "object", "present beside a method embed");
  const Json from = Json::parse(model.program().embedding()->string_view(), nullptr, false);
  if (!from.is_object()) return invalid_field(model, "object", "JSON");
  EmbeddingConfig config;
  MOTE_RETURN_IF_ERROR(read_pooling(model, from, config));
  MOTE_RETURN_IF_ERROR(read_prompts(model, from, config));
  MOTE_RETURN_IF_ERROR(read_max_tokens(model, from, config));
  config.dimensions =
      method.values()->Get(static_cast<uint32_t>(method.outputs()->Get(0)))->shape()->Get(2)->constant();
  config.bidirectional = is_bidirectional(method);
  return config;
}

}  // namespace mote
