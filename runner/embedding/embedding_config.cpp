#include "runner/embedding/embedding_config.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

using Kind = JsonTree::Kind;

// As sentence-transformers names them.
constexpr std::array<const char*, 6> kPoolings{"mean",        "lasttoken", "cls", "max", "mean_sqrt_len_tokens",
                                               "weightedmean"};

constexpr size_t kMaxDepth = 8;

Status invalid_field(const Model& model, const char* field, const std::string& must) {
  return {Code::kInvalidProgram, model.path() + ": embedding: " + field + ": must be " + must};
}

Status read_prompts(const Model& model, const JsonTree& from, EmbeddingConfig& to) {
  if (const JsonTree* prompts = from.find("prompts"); prompts != nullptr) {
    const auto is_text = [](const JsonTree& value) { return value.kind == Kind::kString; };
    if (prompts->kind != Kind::kObject || !std::ranges::all_of(prompts->children, is_text))
      return invalid_field(model, "prompts", "an object of texts");
    for (size_t i = 0; i < prompts->names.size(); ++i)
      to.prompts.insert_or_assign(prompts->names[i], prompts->children[i].text);
  }
  const JsonTree* standard = from.find("default_prompt_name");
  if (standard == nullptr) return {};
  if (standard->kind == Kind::kString) to.default_prompt_name = standard->text;
  if (!to.prompts.contains(to.default_prompt_name))
    return invalid_field(model, "default_prompt_name", "the name of one of the prompts");
  return {};
}

Status read_pooling(const Model& model, const JsonTree& from, EmbeddingConfig& to) {
  const JsonTree* name = from.find("pooling");
  const bool is_text = name != nullptr && name->kind == Kind::kString;
  const auto found = is_text ? std::ranges::find(kPoolings, name->text) : kPoolings.end();
  std::string names;
  for (const char* each : kPoolings) names += (names.empty() ? "" : ", ") + std::string(each);
  if (found == kPoolings.end()) return invalid_field(model, "pooling", "one of " + names);
  to.pooling = static_cast<Pooling>(found - kPoolings.begin());
  if (const JsonTree* included = from.find("include_prompt"); included != nullptr) {
    if (included->kind != Kind::kBoolean) return invalid_field(model, "include_prompt", "true or false");
    to.include_prompt = included->number != 0.0;
  }
  return {};
}

Status read_max_tokens(const Model& model, const JsonTree& from, EmbeddingConfig& to) {
  const int64_t longest = std::min<int64_t>(model.max_position_embeddings(), kMaxTokens);
  to.max_tokens = longest;
  const JsonTree* given = from.find("max_tokens");
  if (given == nullptr) return {};
  if (given->kind != Kind::kInteger || given->number < 1 || given->number > static_cast<double>(longest))
    return invalid_field(model, "max_tokens", "1.." + std::to_string(longest));
  to.max_tokens = static_cast<int64_t>(given->number);
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
  std::string prompts;
  for (const auto& [name, text] : config.prompts)
    prompts += (prompts.empty() ? "" : ", ") + json_string(name) + ": " + json_string(text);
  const std::string& standard = config.default_prompt_name;
  return format("{\"pooling\": \"%s\", \"dimensions\": %lld, \"max_tokens\": %lld, \"bidirectional\": %s, ",
                kPoolings[static_cast<size_t>(config.pooling)], static_cast<long long>(config.dimensions),
                static_cast<long long>(config.max_tokens), config.bidirectional ? "true" : "false") +
         format("\"include_prompt\": %s, \"prompts\": {", config.include_prompt ? "true" : "false") + prompts +
         "}, \"default_prompt_name\": " + (standard.empty() ? "null" : json_string(standard)) + "}";
}

Result<EmbeddingConfig> embedding_config(const Model& model) {
  const auto index = model.bound()->method_index(kEmbed);
  MOTE_REQUIRE(index.ok(), Code::kInvalidArgument,
               "%s has no method that gives embeddings: export the checkpoint with --embed", model.path().c_str());
  const fb::Method& method = model.bound()->method(*index);
  if (model.program().embedding() == nullptr) return invalid_field(model, "object", "present beside a method embed");
  const std::optional<JsonTree> from = parse_json_tree(model.program().embedding()->string_view(), kMaxDepth);
  if (!from || from->kind != Kind::kObject) return invalid_field(model, "object", "JSON");
  EmbeddingConfig config;
  MOTE_RETURN_IF_ERROR(read_pooling(model, *from, config));
  MOTE_RETURN_IF_ERROR(read_prompts(model, *from, config));
  MOTE_RETURN_IF_ERROR(read_max_tokens(model, *from, config));
  config.dimensions =
      method.values()->Get(static_cast<uint32_t>(method.outputs()->Get(0)))->shape()->Get(2)->constant();
  config.bidirectional = is_bidirectional(method);
  return config;
}

}  // namespace mote
