#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tokenizer/compile/json_parts.h"
#include "tokenizer/compile/table_builder.h"
#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {
namespace {

constexpr size_t kMaxAddedTokenBytes = 1024;

struct Added {
  std::string content;
  bool special = false;
  bool normalized = false;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
};

Result<Added> read_token(const Field& field) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  Added token;
  MOTE_ASSIGN(token.content, field["content"].text());
  if (token.content.size() > kMaxAddedTokenBytes) {
    return field["content"].error("at most " + std::to_string(kMaxAddedTokenBytes) + " bytes long");
  }
  MOTE_RETURN_IF_ERROR(field["id"].integer(0, kMaxTokenId).status());
  MOTE_ASSIGN(token.special, field["special"].boolean(false));
  MOTE_ASSIGN(token.normalized, field["normalized"].boolean(!token.special));
  MOTE_ASSIGN(token.lstrip, field["lstrip"].boolean(false));
  MOTE_ASSIGN(token.rstrip, field["rstrip"].boolean(false));
  MOTE_ASSIGN(token.single_word, field["single_word"].boolean(false));
  return token;
}

// The normalizers of a draft, ready to run.
class Normalizers {
 public:
  Status make(const Draft& draft) {
    for (const auto& from : draft.segment.normalizers) {
      flatbuffers::FlatBufferBuilder builder;
      builder.Finish(fb::Normalizer::Pack(builder, from.get()));
      buffers_.push_back(builder.Release());
      MOTE_ASSIGN(auto normalizer, make_normalizer(*flatbuffers::GetRoot<fb::Normalizer>(buffers_.back().data())));
      normalizers_.push_back(std::move(normalizer));
    }
    return {};
  }

  Result<std::string> apply(const std::string& text) const {
    AlignedText aligned(text, 0, text.size(), false);
    for (const auto& normalizer : normalizers_) MOTE_RETURN_IF_ERROR(normalizer->apply(aligned));
    return aligned.text();
  }

 private:
  std::vector<flatbuffers::DetachedBuffer> buffers_;
  std::vector<std::unique_ptr<Normalizer>> normalizers_;
};

using Ids = std::unordered_map<std::string, int32_t>;

// Gives ids as Hugging Face does: the vocabulary's, or the next that is free, whatever the file says.
class IdGiver {
 public:
  IdGiver(const Draft& draft, size_t vocabulary_size) : next_(static_cast<int64_t>(vocabulary_size)) {
    for (size_t id = 0; id < draft.model_tokens.size(); ++id) {
      if (draft.model_tokens[id].has_value()) ids_.insert_or_assign(*draft.model_tokens[id], static_cast<int32_t>(id));
    }
  }

  Result<int32_t> id_of(const std::string& content, const Field& field) {
    const auto [found, is_new] = ids_.try_emplace(content, static_cast<int32_t>(next_));
    if (is_new && next_++ > kMaxTokenId) return field["id"].error("at most " + std::to_string(kMaxTokenId));
    return found->second;
  }

 private:
  Ids ids_;
  int64_t next_;
};

}  // namespace

Status read_added_tokens(const Field& field, size_t vocabulary_size, Draft& draft) {
  if (field.is_null()) return {};
  MOTE_RETURN_IF_ERROR(field.require_array());
  Normalizers normalizers;
  MOTE_RETURN_IF_ERROR(normalizers.make(draft));
  IdGiver giver(draft, vocabulary_size);
  std::map<int32_t, Added> tokens;
  std::unordered_set<std::string> special;
  for (size_t i = 0; i < field.json().size(); ++i) {
    MOTE_ASSIGN(Added token, read_token(field[i]));
    if (token.content.empty()) continue;
    MOTE_ASSIGN(const int32_t id, giver.id_of(token.content, field[i]));
    if (token.special) special.insert(token.content);
    tokens.insert_or_assign(id, std::move(token));
  }
  std::vector<std::pair<std::string, int32_t>> raw;
  std::vector<std::pair<std::string, int32_t>> normalized;
  std::unordered_map<std::string, std::string> seen;
  for (const auto& [id, token] : tokens) {
    const auto index = static_cast<int32_t>(draft.segment.added.size());
    draft.segment.added.emplace_back(id, special.contains(token.content), token.single_word, token.lstrip,
                                     token.rstrip);
    std::string text = token.content;
    if (token.normalized) {
      MOTE_ASSIGN(text, normalizers.apply(text));
      const auto [other, is_new] = seen.try_emplace(text, token.content);
      if (text.empty() || !is_new) {
        return Field(Json(token.content), field.path() + "[].content")
            .error(text.empty() ? "a text of which the normalizer leaves something"
                                : "a text that is not normalised to the same as \"" + other->second + "\"");
      }
    }
    (token.normalized ? normalized : raw).emplace_back(text, index);
    draft.set_added_token(id, text);
  }
  draft.segment.raw_added = build_trie(std::move(raw));
  draft.segment.normalized_added = build_trie(std::move(normalized));
  const size_t num_ids = std::max(draft.model_tokens.size(), draft.added_tokens.size());
  for (size_t id = 0; id < num_ids; ++id) {
    const auto& added = id < draft.added_tokens.size() ? draft.added_tokens[id] : std::optional<std::string>();
    const auto& text = added.has_value() ? added : draft.model_tokens[id < draft.model_tokens.size() ? id : 0];
    const bool has_text = added.has_value() || id < draft.model_tokens.size();
    if (has_text && text.has_value() && special.contains(*text)) draft.mark_special(static_cast<int32_t>(id));
  }
  return {};
}

}  // namespace mote::tokenizer
