#include "tokenizer/compile/draft.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tokenizer/byte_alphabet.h"
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
  std::vector<uint32_t> of_model;    // indices of the strings that the model knows
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

// Marks the tokens that merging makes of their own bytes, so that a text that is one needs no merging.
Status mark_whole_tokens(std::span<std::byte> bytes) {
  const fb::Segment* segment = fb::GetSegment(bytes.data());
  const fb::ModelKind kind = segment->model()->kind();
  if (kind != fb::ModelKind::bpe && kind != fb::ModelKind::byte_level_bpe) return {};
  MOTE_ASSIGN(const auto model, make_model(*segment));
  const VocabularyView vocabulary(*segment);
  std::vector<uint8_t> flags(segment->token_flags()->begin(), segment->token_flags()->end());
  std::vector<int32_t> ids;
  for (size_t id = 0; id < flags.size(); ++id) {
    const std::string_view text = vocabulary.strings()[id];
    if (text.empty() || vocabulary.find(text) != static_cast<int32_t>(id)) continue;
    ids.clear();
    if (!model->encode_ids(text, ids).ok()) continue;
    if (ids.size() == 1 && ids[0] == static_cast<int32_t>(id)) flags[id] |= kTokenWhole;
  }
  std::memcpy(const_cast<uint8_t*>(segment->token_flags()->data()), flags.data(), flags.size());
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
  const bool ignore_merges = segment.model->ignore_merges;
  std::vector<std::byte> bytes = packed(segment);
  if (!ignore_merges) MOTE_RETURN_IF_ERROR(mark_whole_tokens(bytes));
  MOTE_RETURN_IF_ERROR(Pipeline::open(bytes, {}).status());
  return bytes;
}

}  // namespace mote::tokenizer
