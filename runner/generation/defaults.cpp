#include "runner/generation/defaults.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runner/model/generation_config.h"

namespace mote {
namespace {

using Kind = JsonTree::Kind;

constexpr int32_t kDefaultTopK = 50;

Status wrong(const char* key, const char* accepted) {
  return {Code::kInvalidProgram, format("generation_config: %s must be %s", key, accepted)};
}

// nullptr if there is none or it is null.
const JsonTree* find(const JsonTree& json, const char* key) {
  const JsonTree* found = json.find(key);
  return found == nullptr || found->kind == Kind::kNull ? nullptr : found;
}

Status read_number(const JsonTree& json, const char* key, float& value) {
  const JsonTree* found = find(json, key);
  if (found == nullptr) return {};
  if (!found->is_number()) return wrong(key, "a number");
  value = static_cast<float>(found->number);
  return {};
}

template <typename Integer>
Status read_integer(const JsonTree& json, const char* key, Integer& value) {
  const JsonTree* found = find(json, key);
  if (found == nullptr) return {};
  const double number = found->is_number() ? found->number : -1.0;
  if (!(number >= 0.0 && number <= INT32_MAX && std::floor(number) == number))
    return wrong(key, "an integer, 0 or more");
  value = static_cast<Integer>(number);
  return {};
}

Status read_boolean(const JsonTree& json, const char* key, bool& value) {
  const JsonTree* found = find(json, key);
  if (found == nullptr) return {};
  if (found->kind != Kind::kBoolean) return wrong(key, "true or false");
  value = found->number != 0.0;
  return {};
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool is_id(const JsonTree& json) { return json.kind == Kind::kInteger && json.number >= 0 && json.number <= INT32_MAX; }
bool is_list_of_ids(const JsonTree& json) {
  return json.kind == Kind::kArray && std::ranges::all_of(json.children, is_id);
}
int32_t id_of(const JsonTree& json) { return static_cast<int32_t>(json.number); }

std::vector<int32_t> ids_of(const JsonTree& json) {
  std::vector<int32_t> ids;
  for (const JsonTree& id : json.children) ids.push_back(id_of(id));
  return ids;
}

// The list at `key`; an empty one if there is none.
Result<std::span<const JsonTree>> read_list(const JsonTree& json, const char* key) {
  const JsonTree* found = find(json, key);
  if (found == nullptr) return std::span<const JsonTree>();
  if (found->kind != Kind::kArray) return wrong(key, "a list");
  return std::span<const JsonTree>(found->children);
}

// sequence_bias, bad_words_ids and suppress_tokens, which are biases all.
Status read_biases(const JsonTree& json, std::span<const int32_t> eos_token_ids, std::vector<SequenceBias>& biases) {
  MOTE_ASSIGN(const auto sequences, read_list(json, "sequence_bias"));
  for (const JsonTree& entry : sequences) {
    const std::vector<JsonTree>& pair = entry.children;
    const bool is_pair = entry.kind == Kind::kArray && pair.size() == 2 && is_list_of_ids(pair[0]) &&
                         !pair[0].children.empty() && pair[1].is_number();
    if (!is_pair) return wrong("sequence_bias", "a list of [token ids, bias]");
    biases.push_back({ids_of(pair[0]), static_cast<float>(pair[1].number)});
  }
  MOTE_ASSIGN(const auto bad_words, read_list(json, "bad_words_ids"));
  for (const JsonTree& word : bad_words) {
    if (!is_list_of_ids(word) || word.children.empty()) return wrong("bad_words_ids", "a list of lists of token ids");
    std::vector<int32_t> ids = ids_of(word);
    const bool is_eos =
        ids.size() == 1 && std::find(eos_token_ids.begin(), eos_token_ids.end(), ids[0]) != eos_token_ids.end();
    if (!is_eos) biases.push_back({std::move(ids), kNever});
  }
  MOTE_ASSIGN(const auto suppressed, read_list(json, "suppress_tokens"));
  if (!std::ranges::all_of(suppressed, is_id)) return wrong("suppress_tokens", "a list of token ids");
  for (const JsonTree& id : suppressed) biases.push_back({{id_of(id)}, kNever});
  return {};
}

}  // namespace

Result<GenerationDefaults> read_generation_defaults(std::string_view text, std::span<const int32_t> eos_token_ids) {
  MOTE_ASSIGN(const JsonTree json, parse_generation_config(text));
  GenerationDefaults defaults;
  SamplingOptions& sampling = defaults.sampling;
  sampling.top_k = kDefaultTopK;
  MOTE_RETURN_IF_ERROR(read_boolean(json, "do_sample", sampling.do_sample));
  MOTE_RETURN_IF_ERROR(read_number(json, "temperature", sampling.temperature));
  MOTE_RETURN_IF_ERROR(read_integer(json, "top_k", sampling.top_k));
  MOTE_RETURN_IF_ERROR(read_number(json, "top_p", sampling.top_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "min_p", sampling.min_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "typical_p", sampling.typical_p));
  MOTE_RETURN_IF_ERROR(read_number(json, "repetition_penalty", sampling.repetition_penalty));
  MOTE_RETURN_IF_ERROR(read_integer(json, "no_repeat_ngram_size", sampling.no_repeat_ngram_size));
  MOTE_RETURN_IF_ERROR(read_integer(json, "min_new_tokens", sampling.min_new_tokens));
  MOTE_RETURN_IF_ERROR(read_biases(json, eos_token_ids, sampling.sequence_bias));
  MOTE_RETURN_IF_ERROR(read_integer(json, "max_new_tokens", defaults.max_new_tokens));
  return defaults;
}

Result<std::shared_ptr<const GenerationDefaults>> generation_defaults(const Model& model) {
  return model.derived<GenerationDefaults>([&]() -> Result<std::shared_ptr<const GenerationDefaults>> {
    MOTE_ASSIGN(GenerationDefaults read, read_generation_defaults(model.generation_config(), model.eos_token_ids()));
    return std::make_shared<const GenerationDefaults>(std::move(read));
  });
}

}  // namespace mote
