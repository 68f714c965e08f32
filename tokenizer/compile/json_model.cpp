#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/compile/json_parts.h"
#include "tokenizer/compile/table_builder.h"
#include "tokenizer/model/model.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

using Ids = std::unordered_map<std::string, int32_t>;

constexpr size_t kMaxTokenBytes = 4096;

Status read_vocabulary(const Field& field, Draft& draft, Ids& ids) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  ids.reserve(field.json().size());
  for (const auto& [text, json] : field.json().items()) {
    const Field entry(json, field.path() + "." + text);
    MOTE_ASSIGN(const int64_t value, entry.integer(0, kMaxTokenId));
    const auto id = static_cast<int32_t>(value);
    const auto index = static_cast<size_t>(id);
    if (text.size() > kMaxTokenBytes)
      return entry.error("the id of at most " + std::to_string(kMaxTokenBytes) + " bytes");
    if (index < draft.model_tokens.size() && draft.model_tokens[index].has_value()) {
      return entry.error("an id that no other token has; \"" + *draft.model_tokens[index] + "\" has it");
    }
    draft.set_model_token(id, text);
    ids.emplace(text, id);
  }
  return {};
}

// A merge is ["left", "right"] or "left right".
Result<std::pair<std::string, std::string>> read_merge(const Field& field) {
  const Json& json = field.json();
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return std::pair(json[0].get<std::string>(), json[1].get<std::string>());
  }
  const std::string text = json.is_string() ? json.get<std::string>() : std::string();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    return field.error("[\"left\", \"right\"] or \"left right\"");
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

class MergeReader {
 public:
  MergeReader(const Ids& ids, std::string_view prefix) : ids_(ids), prefix_(prefix) {}

  Status read(const Field& field) {
    MOTE_RETURN_IF_ERROR(field.require_array());
    merges_.reserve(field.json().size());
    for (size_t i = 0; i < field.json().size(); ++i) {
      const Json& json = field.json()[i];
      if (json.is_string() && json.get_ref<const std::string&>().starts_with("#version")) continue;
      MOTE_RETURN_IF_ERROR(add(field[i]));
    }
    return {};
  }

  std::vector<fb::Merge> table() const { return build_merges(merges_); }
  // Whether no merge leads from another character to a visible space.
  bool spaces_start_words() const { return spaces_start_words_; }

 private:
  Status add(const Field& field) {
    MOTE_ASSIGN(const auto merge, read_merge(field));
    const auto& [left, right] = merge;
    const bool fits = right.size() >= prefix_.size();
    const auto merged = ids_.find(fits ? left + right.substr(prefix_.size()) : std::string());
    const auto left_id = ids_.find(left);
    const auto right_id = ids_.find(right);
    if (!fits || left_id == ids_.end() || right_id == ids_.end() || merged == ids_.end()) {
      return field.error("a pair of tokens whose concatenation is a token too");
    }
    if (merged->second == left_id->second || merged->second == right_id->second) {
      return field.error("a pair that does not merge into one of its own halves");
    }
    const auto left_value = static_cast<uint32_t>(left_id->second);
    const auto right_value = static_cast<uint32_t>(right_id->second);
    if (!pairs_.emplace(static_cast<uint64_t>(left_value) << 32 | right_value, merges_.size()).second) {
      return field.error("a pair that stands in the list once");
    }
    merges_.emplace_back(left_value, right_value, static_cast<uint32_t>(merges_.size()), merged->second);
    if (right.starts_with(kSpaceSymbol) && !left.ends_with(kSpaceSymbol)) spaces_start_words_ = false;
    return {};
  }

  const Ids& ids_;
  std::string_view prefix_;
  std::vector<fb::Merge> merges_;
  std::unordered_map<uint64_t, size_t> pairs_;
  bool spaces_start_words_ = true;
};

Result<std::string> read_optional_text(const Field& field) {
  if (field.is_null()) return std::string();
  return field.text();
}

// kMissingId: the file names a token that the vocabulary lacks.
Result<int32_t> read_unknown(const Field& field, const Ids& ids) {
  if (field.is_null()) return -1;
  MOTE_ASSIGN(const std::string text, field.text());
  const auto found = ids.find(text);
  return found == ids.end() ? kMissingId : found->second;
}

// Ids of the 256 bytes as `spelling` writes them; empty if none is there. complete: none is missing that UTF-8 may
// have.
template <typename Spelling>
std::vector<int32_t> byte_ids_of(const Ids& ids, Spelling spelling, bool& complete) {
  std::vector<int32_t> byte_ids(256, -1);
  complete = true;
  bool any = false;
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(spelling(static_cast<unsigned char>(byte)));
    if (found != ids.end()) byte_ids[byte] = found->second;
    any = any || found != ids.end();
    const bool in_utf8 = byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
    complete = complete && (found != ids.end() || !in_utf8);
  }
  if (!any) byte_ids.clear();
  return byte_ids;
}

std::string fallback_spelling(unsigned char byte) { return format("<0x%02X>", byte); }

// Whether every text reaches the model in the byte-level alphabet, spelled by the last pre-tokenizer.
bool reads_bytes(const Draft& draft) {
  const auto& pretokenizers = draft.segment.pretokenizers;
  if (pretokenizers.empty() || pretokenizers.back()->kind != fb::PretokenizerKind::byte_level) return false;
  size_t count = 0;
  for (const auto& pretokenizer : pretokenizers) count += pretokenizer->kind == fb::PretokenizerKind::byte_level;
  return count == 1;
}

Status read_bpe(const Field& field, Draft& draft) {
  fb::ModelT& model = *draft.segment.model;
  model.kind = fb::ModelKind::bpe;
  draft.segment.kind = reads_bytes(draft) ? "byte-level BPE" : "BPE";
  MOTE_RETURN_IF_ERROR(field["dropout"].require_off());
  MOTE_ASSIGN(model.continuing_subword_prefix, read_optional_text(field["continuing_subword_prefix"]));
  MOTE_ASSIGN(model.end_of_word_suffix, read_optional_text(field["end_of_word_suffix"]));
  MOTE_ASSIGN(model.fuse_unk, field["fuse_unk"].boolean(false));
  MOTE_ASSIGN(model.byte_fallback, field["byte_fallback"].boolean(false));
  MOTE_ASSIGN(model.ignore_merges, field["ignore_merges"].boolean(false));
  Ids ids;
  MOTE_RETURN_IF_ERROR(read_vocabulary(field["vocab"], draft, ids));
  MOTE_ASSIGN(model.unk_id, read_unknown(field["unk_token"], ids));
  MergeReader merges(ids, model.continuing_subword_prefix);
  MOTE_RETURN_IF_ERROR(merges.read(field["merges"]));
  model.merges = merges.table();
  const bool plain = model.continuing_subword_prefix.empty() && model.end_of_word_suffix.empty();
  bool complete = false;
  model.byte_ids = byte_ids_of(ids, byte_spelling, complete);
  if (plain && complete && reads_bytes(draft)) {
    model.kind = fb::ModelKind::byte_level_bpe;
    draft.unspell = true;
    return {};
  }
  model.byte_ids = byte_ids_of(ids, fallback_spelling, complete);
  const bool knows_space = ids.contains(std::string(kSpaceSymbol));
  if (plain && knows_space && merges.spaces_start_words()) model.word_start = 0x2581;
  return {};
}

Status read_unigram(const Field& field, Draft& draft) {
  fb::ModelT& model = *draft.segment.model;
  model.kind = fb::ModelKind::unigram;
  draft.segment.kind = "Unigram";
  MOTE_ASSIGN(model.byte_fallback, field["byte_fallback"].boolean(false));
  const Field vocabulary = field["vocab"];
  MOTE_RETURN_IF_ERROR(vocabulary.require_array());
  const size_t size = vocabulary.json().size();
  if (size > static_cast<size_t>(kMaxTokenId))
    return vocabulary.error("at most " + std::to_string(kMaxTokenId) + " tokens");
  if (!field["unk_id"].is_null()) {
    MOTE_ASSIGN(const int64_t unk_id, field["unk_id"].integer(0, static_cast<int64_t>(size) - 1));
    model.unk_id = static_cast<int32_t>(unk_id);
  }
  Ids ids;
  std::vector<std::pair<std::string, int32_t>> strings;
  model.min_score = HUGE_VAL;
  for (size_t i = 0; i < size; ++i) {
    const Field entry = vocabulary[i];
    if (!entry.json().is_array() || entry.json().size() != 2) return entry.error("[token, score]");
    MOTE_ASSIGN(std::string text, entry[size_t{0}].text());
    MOTE_ASSIGN(const double score, entry[size_t{1}].number());
    if (text.size() > kMaxTokenBytes)
      return entry.error("a token of at most " + std::to_string(kMaxTokenBytes) + " bytes");
    model.scores.push_back(score);
    model.min_score = std::min(model.min_score, score);
    const auto id = static_cast<int32_t>(i);
    if (!text.empty()) strings.emplace_back(text, id);
    ids[text] = id;
    draft.set_model_token(id, std::move(text));
  }
  model.trie = build_trie(std::move(strings));
  bool complete = false;
  model.byte_ids = byte_ids_of(ids, fallback_spelling, complete);
  return {};
}

Status read_wordpiece(const Field& field, Draft& draft) {
  fb::ModelT& model = *draft.segment.model;
  model.kind = fb::ModelKind::wordpiece;
  draft.segment.kind = "WordPiece";
  MOTE_ASSIGN(model.continuing_subword_prefix, field["continuing_subword_prefix"].text());
  MOTE_ASSIGN(const int64_t longest, field["max_input_chars_per_word"].integer(0, UINT32_MAX));
  model.max_input_chars_per_word = static_cast<uint32_t>(longest);
  Ids ids;
  MOTE_RETURN_IF_ERROR(read_vocabulary(field["vocab"], draft, ids));
  for (const auto& [text, id] : ids)
    model.longest_token = std::max(model.longest_token, static_cast<uint32_t>(text.size()));
  MOTE_ASSIGN(model.unk_id, read_unknown(field["unk_token"], ids));
  return {};
}

Status read_wordlevel(const Field& field, Draft& draft) {
  draft.segment.model->kind = fb::ModelKind::wordlevel;
  draft.segment.kind = "WordLevel";
  Ids ids;
  MOTE_RETURN_IF_ERROR(read_vocabulary(field["vocab"], draft, ids));
  MOTE_ASSIGN(draft.segment.model->unk_id, read_unknown(field["unk_token"], ids));
  return {};
}

}  // namespace

Status read_model(const Field& field, Draft& draft) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  draft.segment.model = std::make_unique<fb::ModelT>();
  std::string type = field.type();
  if (type.empty()) {  // files from before models had types
    type = !field["merges"].is_null()                      ? "BPE"
           : field["vocab"].json().is_array()              ? "Unigram"
           : !field["continuing_subword_prefix"].is_null() ? "WordPiece"
                                                           : "WordLevel";
  }
  if (type == "BPE") return read_bpe(field, draft);
  if (type == "Unigram") return read_unigram(field, draft);
  if (type == "WordPiece") return read_wordpiece(field, draft);
  if (type == "WordLevel") return read_wordlevel(field, draft);
  return field["type"].error("BPE, Unigram, WordPiece or WordLevel");
}

}  // namespace mote::tokenizer
