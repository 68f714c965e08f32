#include "runner/generation/options/token_lists.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "runner/generation/options/read_value.h"

namespace mote {
namespace {

using Kind = JsonTree::Kind;

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::optional<float> bias_of(const JsonTree& from) {
  if (from.kind == Kind::kString && from.text == "-inf") return kNever;
  const auto bias = static_cast<float>(from.number);
  if (!from.is_number() || !std::isfinite(bias)) return std::nullopt;
  return bias;
}

void add(OptionValues& to, std::vector<int32_t> ids, float bias) {
  to.generation.sampling.sequence_bias.push_back({std::move(ids), bias});
}

// Its text's ids, without BOS and such; special tokens that it spells stay text.
Result<std::vector<int32_t>> ids_of(const Option& option, std::string_view text, const Model& model) {
  const auto tokenizer = model.require_tokenizer();
  if (!tokenizer.ok())
    return Status(tokenizer.status().code(), std::string(option.name) + ": " + tokenizer.status().message());
  return (*tokenizer)->encode(text, {.add_special = false, .parse_special = false});
}

bool is_eos(const Model* model, const std::vector<int32_t>& ids) {
  return model != nullptr && ids.size() == 1 && model->is_eos(ids[0]);
}

}  // namespace

// A list of [ids, bias].
Status read_sequence_bias(const Option& option, const JsonTree& from, OptionValues& to, const Model*) {
  if (from.kind != Kind::kArray) return wrong_value(option, from);
  for (const JsonTree& entry : from.children) {
    if (entry.kind != Kind::kArray || entry.children.size() != 2) return wrong_value(option, from);
    std::vector<int32_t> ids;
    const bool is_ids = read_value(option, entry.children[0], ids).ok() && !ids.empty();
    const std::optional<float> bias = bias_of(entry.children[1]);
    if (!is_ids || !bias.has_value()) return wrong_value(option, from);
    add(to, std::move(ids), *bias);
  }
  return {};
}

// An object of token ids.
Status read_logit_bias(const Option& option, const JsonTree& from, OptionValues& to, const Model*) {
  if (from.kind != Kind::kObject) return wrong_value(option, from);
  for (size_t i = 0; i < from.names.size(); ++i) {
    int32_t id = -1;
    const char* end = from.names[i].data() + from.names[i].size();
    const auto parsed = std::from_chars(from.names[i].data(), end, id);
    const std::optional<float> bias = bias_of(from.children[i]);
    if (parsed.ec != std::errc() || parsed.ptr != end || id < 0 || !bias.has_value()) return wrong_value(option, from);
    add(to, {id}, *bias);
  }
  return {};
}

Status read_bad_words(const Option& option, const JsonTree& from, OptionValues& to, const Model* model) {
  std::vector<std::string> words;
  MOTE_RETURN_IF_ERROR(read_value(option, from, words));
  for (const std::string& word : words) {
    if (model == nullptr) continue;
    for (const char* space : {"", " "}) {
      MOTE_ASSIGN(std::vector<int32_t> ids, ids_of(option, space + word, *model));
      if (!ids.empty() && !is_eos(model, ids)) add(to, std::move(ids), kNever);
    }
  }
  return {};
}

Status read_bad_words_ids(const Option& option, const JsonTree& from, OptionValues& to, const Model* model) {
  if (from.kind != Kind::kArray) return wrong_value(option, from);
  for (const JsonTree& word : from.children) {
    std::vector<int32_t> ids;
    if (!read_value(option, word, ids).ok() || ids.empty()) return wrong_value(option, from);
    if (!is_eos(model, ids)) add(to, std::move(ids), kNever);
  }
  return {};
}

Status read_suppress_tokens(const Option& option, const JsonTree& from, OptionValues& to, const Model*) {
  std::vector<int32_t> ids;
  MOTE_RETURN_IF_ERROR(read_value(option, from, ids));
  for (const int32_t id : ids) add(to, {id}, kNever);
  return {};
}

Status read_dry_sequence_breakers(const Option& option, const JsonTree& from, OptionValues& to, const Model* model) {
  const JsonTree one{Kind::kArray, 0.0, {}, {}, {from}};
  const JsonTree& list = from.kind == Kind::kString ? one : from;
  if (list.kind != Kind::kArray) return wrong_value(option, from);
  std::vector<int32_t> breakers;
  for (const JsonTree& item : list.children) {
    std::vector<int32_t> ids;
    if (item.kind != Kind::kString) {
      if (!read_value(option, JsonTree{Kind::kArray, 0.0, {}, {}, {item}}, ids).ok()) return wrong_value(option, from);
    } else if (model != nullptr) {
      MOTE_ASSIGN(ids, ids_of(option, item.text, *model));
    }
    if (!ids.empty()) breakers.push_back(ids.back());
  }
  to.generation.sampling.dry_sequence_breakers = std::move(breakers);
  return {};
}

std::string show_sequence_bias(const OptionValues& values) {
  std::string text;
  for (const SequenceBias& entry : values.generation.sampling.sequence_bias) {
    text += (text.empty() ? "[" : ", [") + json_of(entry.ids) + ", " + json_of(entry.bias) + "]";
  }
  return "[" + text + "]";
}

std::string show_dry_sequence_breakers(const OptionValues& values) {
  return json_of(values.generation.sampling.dry_sequence_breakers);
}

}  // namespace mote
