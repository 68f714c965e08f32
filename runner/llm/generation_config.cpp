#include "runner/llm/generation_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

template <typename Integer>
Status read_integer(const Json& json, const char* key, Integer& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  const double number = found->is_number() ? found->get<double>() : -1.0;
  if (!(number >= 0.0 && number <= INT32_MAX && std::floor(number) == number)) return wrong(key, "an integer, 0 or more");
  value = static_cast<Integer>(number);
  return {};
}

Status read_boolean(const Json& json, const char* key, bool& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_boolean()) return wrong(key, "true or false");
  value = found->get<bool>();
  return {};
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool is_id(const Json& json) { return json.is_number_integer() && json >= 0 && json <= INT32_MAX; }
bool is_list_of_ids(const Json& json) { return json.is_array() && std::all_of(json.begin(), json.end(), is_id); }

// The list at `key`; an empty one if there is none.
Result<Json> read_list(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return Json(Json::array());
  if (!found->is_array()) return wrong(key, "a list");
  return Json(*found);
}

// sequence_bias, bad_words_ids and suppress_tokens, which are biases all.
Status read_biases(const Json& json, std::span<const int32_t> eos_token_ids, std::vector<SequenceBias>& biases) {
  MOTE_ASSIGN(const Json sequences, read_list(json, "sequence_bias"));
  for (const Json& entry : sequences) {
    const bool is_pair = entry.is_array() && entry.size() == 2 && is_list_of_ids(entry[0]) && !entry[0].empty() && entry[1].is_number();
    if (!is_pair) return wrong("sequence_bias", "a list of [token ids, bias]");
    biases.push_back({entry[0].get<std::vector<int32_t>>(), static_cast<float>(entry[1].get<double>())});
  }
  MOTE_ASSIGN(const Json bad_words, read_list(json, "bad_words_ids"));
  for (const Json& word : bad_words) {
    if (!is_list_of_ids(word) || word.empty()) return wrong("bad_words_ids", "a list of lists of token ids");
    auto ids = word.get<std::vector<int32_t>>();
    const bool is_eos = ids.size() == 1 && std::find(eos_token_ids.begin(), eos_token_ids.end(), ids[0]) != eos_token_ids.end();
    if (!is_eos) biases.push_back({std::move(ids), kNever});
  }
  MOTE_ASSIGN(const Json suppressed, read_list(json, "suppress_tokens"));
  if (!is_list_of_ids(suppressed)) return wrong("suppress_tokens", "a list of token ids");
  for (const Json& id : suppressed) biases.push_back({{id.get<int32_t>()}, kNever});
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
  config.sampling.top_k = kDefaultTopK;
  MOTE_RETURN_IF_ERROR(read_boolean(json, "do_sample", config.sampling.do_sample));
  MOTE_RETURN_IF_ERROR(read_number(json, "temperature", config.sampling.temperature));
  MOTE_RETURN_IF_ERROR(read_integer(json, "top_k", config.sampling.top_k));
  MOTE_RETURN_IF_ERROR(read_number(json, "top_p", config.sampling.top_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "min_p", config.sampling.min_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "typical_p", config.sampling.typical_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "repetition_penalty", config.sampling.repetition_penalty));
  MOTE_RETURN_IF_ERROR(read_integer(json, "no_repeat_ngram_size", config.sampling.no_repeat_ngram_size));
  MOTE_RETURN_IF_ERROR(read_integer(json, "min_new_tokens", config.sampling.min_new_tokens));
  MOTE_RETURN_IF_ERROR(read_biases(json, eos_token_ids, config.sampling.sequence_bias));
  MOTE_RETURN_IF_ERROR(read_integer(json, "max_new_tokens", config.max_new_tokens));
  json["eos_token_id"] = std::vector<int32_t>(eos_token_ids.begin(), eos_token_ids.end());
  config.json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return config;
}

}  // namespace mote
