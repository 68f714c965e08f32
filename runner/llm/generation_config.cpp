#include "runner/llm/generation_config.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace mote {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kDefaultTopK = 50;
constexpr int kMaxDepth = 32;

Status wrong(const char* key, const char* accepted) {
  return {Code::kInvalidProgram, format("generation_config: %s must be %s", key, accepted)};
}

Status read_number(const Json& json, const char* key, float& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_number()) return wrong(key, "a number");
  value = static_cast<float>(found->get<double>());
  return {};
}

Status read_integer(const Json& json, const char* key, int64_t& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  const double number = found->is_number() ? found->get<double>() : -1.0;
  if (!(number >= 0.0 && number <= INT32_MAX && std::floor(number) == number)) return wrong(key, "an integer, 0 or more");
  value = static_cast<int64_t>(number);
  return {};
}

Status read_boolean(const Json& json, const char* key, bool& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_boolean()) return wrong(key, "true or false");
  value = found->get<bool>();
  return {};
}

// Parses with a bound on nesting: what lies deeper is dropped by the callback.
Json parse_bounded(std::string_view text) {
  bool too_deep = false;
  const Json::parser_callback_t bounded = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  Json json = Json::parse(text.begin(), text.end(), bounded, false);
  return too_deep ? Json(Json::value_t::discarded) : json;
}

}  // namespace

Result<GenerationConfig> parse_generation_config(std::string_view text, std::span<const int32_t> eos_token_ids) {
  Json json = parse_bounded(text);
  MOTE_REQUIRE(json.is_object(), Code::kInvalidProgram, "generation_config must be a JSON object");
  GenerationConfig config;
  int64_t top_k = kDefaultTopK;
  MOTE_RETURN_IF_ERROR(read_boolean(json, "do_sample", config.sampling.do_sample));
  MOTE_RETURN_IF_ERROR(read_number(json, "temperature", config.sampling.temperature));
  MOTE_RETURN_IF_ERROR(read_integer(json, "top_k", top_k));
  MOTE_RETURN_IF_ERROR(read_number(json, "top_p", config.sampling.top_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "min_p", config.sampling.min_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "repetition_penalty", config.sampling.repetition_penalty));
  MOTE_RETURN_IF_ERROR(read_integer(json, "max_new_tokens", config.max_new_tokens));
  config.sampling.top_k = static_cast<int32_t>(top_k);
  json["eos_token_id"] = std::vector<int32_t>(eos_token_ids.begin(), eos_token_ids.end());
  config.json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return config;
}

}  // namespace mote
