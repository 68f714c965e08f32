#include "tokenizer/compile/draft.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/compile/junctions.h"
#include "tokenizer/compile/table_builder.h"
#include "tokenizer/model/model.h"
#include "tokenizer/pipeline.h"

namespace mote::tokenizer {
namespace {

void set(std::vector<std::optional<std::string>>& tokens, int32_t id, std::string text) {
  const auto index = static_cast<size_t>(id);
  if (tokens.size() <= index) tokens.resize(index + 1);
  tokens[index] = std::move(text);
}

std::string stored(const Draft& draft, const std::string& text, uint8_t& flags) {
  if (!draft.unspell) return text;
  auto bytes = spelled_bytes(text);
  if (!bytes.has_value()) return text;
  flags |= kTokenUnspelled;
  return *std::move(bytes);
}

struct Vocabulary {
  std::vector<std::string> strings;  // of the ids, then the aliases
  std::vector<uint8_t> flags;
  std::vector<int32_t> alias_ids;
  std::vector<uint32_t> of_model;  // indices of the strings that the model knows
};

Vocabulary make_vocabulary(const Draft& draft) {
  Vocabulary made;
  const size_t num_ids = std::max(draft.model_tokens.size(), draft.added_tokens.size());
  made.strings.resize(num_ids);
  made.flags.resize(num_ids);
  std::unordered_map<std::string, uint32_t> known;  // of two ids with one spelling the last counts
  for (size_t id = 0; id < num_ids; ++id) {
    const bool in_model = id < draft.model_tokens.size() && draft.model_tokens[id].has_value();
    const bool is_added = id < draft.added_tokens.size() && draft.added_tokens[id].has_value();
    if (!in_model && !is_added) continue;
    uint8_t& flags = made.flags[id];
    flags = kTokenPresent;
    if (id < draft.special.size() && draft.special[id]) flags |= kTokenSpecial;
    made.strings[id] = stored(draft, is_added ? *draft.added_tokens[id] : *draft.model_tokens[id], flags);
    if (!in_model) continue;
    uint8_t model_flags = 0;
    const std::string text = stored(draft, *draft.model_tokens[id], model_flags);
    // What is not in the alphabet never meets a text that is.
    if (draft.unspell && (model_flags & kTokenUnspelled) == 0) continue;
    auto index = static_cast<uint32_t>(id);
    if (text != made.strings[id] || ((flags ^ model_flags) & kTokenUnspelled) != 0) {
      index = static_cast<uint32_t>(num_ids + made.alias_ids.size());
      made.alias_ids.push_back(static_cast<int32_t>(id));
      made.strings.push_back(text);
    }
    known[text] = index;
  }
  for (const auto& [text, index] : known) made.of_model.push_back(index);
  std::sort(made.of_model.begin(), made.of_model.end());
  return made;
}

std::vector<std::byte> packed(const fb::SegmentT& segment) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishSegmentBuffer(builder, fb::Segment::Pack(builder, &segment));
  std::vector<std::byte> bytes(builder.GetSize());
  std::memcpy(bytes.data(), builder.GetBufferPointer(), bytes.size());
  return bytes;
}

bool merges_bytes(const fb::ModelT& model) { return model.kind == fb::ModelKind::byte_level_bpe; }

// Whether every text becomes symbols that say what characters they are, each for itself.
bool is_cut_into_characters(const fb::ModelT& model) {
  if (model.kind != fb::ModelKind::bpe || !model.byte_fallback || model.byte_ids.empty()) return false;
  if (!model.continuing_subword_prefix.empty() || !model.end_of_word_suffix.empty()) return false;
  const std::unordered_set<int64_t> bytes(model.byte_ids.begin(), model.byte_ids.end());
  if (bytes.contains(-1)) return false;
  return std::none_of(model.merges.begin(), model.merges.end(), [&](const fb::Merge& merge) {
    return bytes.contains(merge.left()) || bytes.contains(merge.right());
  });
}

void find_junctions(Draft& draft) {
  fb::ModelT& model = *draft.segment.model;
  if (!merges_bytes(model) && !is_cut_into_characters(model)) return;
  const auto text_of = [&](uint32_t id) {
    uint8_t flags = 0;
    const bool known = id < draft.model_tokens.size() && draft.model_tokens[id].has_value();
    return known ? stored(draft, *draft.model_tokens[id], flags) : std::string();
  };
  build_junctions(text_of, model);
}

// Marks the tokens that merging makes of their own text, so that a text that is one needs no merging.
Status mark_whole_tokens(const fb::Segment& segment, std::vector<uint8_t>& flags) {
  const fb::ModelKind kind = segment.model()->kind();
  if (kind != fb::ModelKind::bpe && kind != fb::ModelKind::byte_level_bpe) return {};
  MOTE_ASSIGN(const auto model, make_model(segment));
  const VocabularyView vocabulary(segment);
  std::vector<int32_t> ids;
  for (size_t id = 0; id < flags.size(); ++id) {
    const std::string_view text = vocabulary.strings()[id];
    if (text.empty() || vocabulary.find(text) != static_cast<int32_t>(id)) continue;
    ids.clear();
    if (!model->encode_ids(text, ids).ok()) continue;
    if (ids.size() == 1 && ids[0] == static_cast<int32_t>(id)) flags[id] |= kTokenWhole;
  }
  return {};
}

}  // namespace

void Draft::set_model_token(int32_t id, std::string text) { set(model_tokens, id, std::move(text)); }

void Draft::set_added_token(int32_t id, std::string text) { set(added_tokens, id, std::move(text)); }

void Draft::mark_special(int32_t id) {
  const auto index = static_cast<size_t>(id);
  if (special.size() <= index) special.resize(index + 1);
  special[index] = true;
}

Result<std::vector<std::byte>> finish(Draft draft) {
  Vocabulary vocabulary = make_vocabulary(draft);
  fb::SegmentT& segment = draft.segment;
  segment.version = kSegmentVersion;
  MOTE_ASSIGN(segment.tokens, build_strings(vocabulary.strings));
  segment.slots = build_slots(vocabulary.strings, vocabulary.of_model);
  segment.token_flags = std::move(vocabulary.flags);
  segment.alias_ids = std::move(vocabulary.alias_ids);
  find_junctions(draft);
  const bool ignore_merges = std::exchange(segment.model->ignore_merges, false);
  std::vector<std::byte> bytes = packed(segment);
  MOTE_RETURN_IF_ERROR(mark_whole_tokens(*fb::GetSegment(bytes.data()), segment.token_flags));
  segment.model->ignore_merges = ignore_merges;
  bytes = packed(segment);
  MOTE_RETURN_IF_ERROR(Pipeline::open(bytes, {}).status());
  return bytes;
}

}  // namespace mote::tokenizer
