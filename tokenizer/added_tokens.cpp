#include "tokenizer/added_tokens.h"

#include "tokenizer/characters.h"

namespace mote::tokenizer {
namespace {

Result<AddedToken> read_token(const Field& field) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  AddedToken token;
  MOTE_ASSIGN(token.content, field["content"].text());
  if (token.content.size() > kMaxAddedTokenBytes) {
    return field["content"].error("at most " + std::to_string(kMaxAddedTokenBytes) + " bytes long");
  }
  MOTE_ASSIGN(const int64_t id, field["id"].integer(0, kMaxTokenId));
  token.id = static_cast<int32_t>(id);
  MOTE_ASSIGN(token.special, field["special"].boolean(false));
  MOTE_ASSIGN(token.normalized, field["normalized"].boolean(!token.special));
  MOTE_ASSIGN(token.lstrip, field["lstrip"].boolean(false));
  MOTE_ASSIGN(token.rstrip, field["rstrip"].boolean(false));
  MOTE_ASSIGN(token.single_word, field["single_word"].boolean(false));
  return token;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end));
}

}  // namespace

void Trie::insert(std::string_view text, size_t value) {
  size_t node = 0;
  for (const char c : text) {
    const uint64_t edge = static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    const auto [found, is_new] = edges_.try_emplace(edge, nodes_.size());
    if (is_new) nodes_.emplace_back();
    node = found->second;
  }
  if (nodes_[node].value == kNone) nodes_[node].value = value;
}

Trie::Found Trie::longest_prefix(std::string_view text) const {
  Found found;
  size_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto edge = edges_.find(static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (nodes_[node].value != kNone) found = {nodes_[node].value, i + 1};
  }
  return found;
}

Result<AddedTokens> AddedTokens::make(const Field& field, const Normalizer* normalizer,
                                      const std::vector<VocabularyEntry>& vocabulary) {
  AddedTokens added;
  if (field.is_null()) return added;
  MOTE_RETURN_IF_ERROR(field.require_array());
  for (size_t i = 0; i < field.json().size(); ++i) {
    MOTE_ASSIGN(AddedToken token, read_token(field[i]));
    if (token.content.empty()) continue;
    if (token.normalized && normalizer != nullptr) {
      MOTE_ASSIGN(const std::string content, normalizer->normalize(token.content));
      added.normalized_.insert(content, added.tokens_.size());
    } else {
      (token.normalized ? added.normalized_ : added.raw_).insert(token.content, added.tokens_.size());
    }
    added.tokens_.push_back(std::move(token));
  }
  added.take_ids(vocabulary);
  for (const AddedToken& token : added.tokens_) {
    if (token.special) added.special_.insert(token.id);
  }
  return added;
}

void AddedTokens::take_ids(const std::vector<VocabularyEntry>& vocabulary) {
  std::unordered_map<std::string_view, AddedToken*> by_content;
  for (AddedToken& token : tokens_) by_content.emplace(token.content, &token);
  for (const VocabularyEntry& entry : vocabulary) {
    const auto found = by_content.find(entry.text);
    if (found != by_content.end()) found->second->id = entry.id;
  }
}

std::vector<Segment> AddedTokens::split(std::string_view text, bool normalized, bool parse_special,
                                        std::span<const TextRange> plain) const {
  const Trie& trie = normalized ? normalized_ : raw_;
  std::vector<Segment> segments;
  size_t rest = 0;  // start of what no segment covers yet
  size_t position = trie.empty() ? text.size() : 0;
  while (position < text.size()) {
    const Trie::Found found = trie.longest_prefix(text.substr(position));
    if (found.length == 0) {
      ++position;
      continue;
    }
    const AddedToken& token = tokens_[found.value];
    size_t begin = position;
    size_t end = position + found.length;
    position = end;
    if (token.special && !parse_special) continue;
    while (!plain.empty() && plain.front().end <= begin) plain = plain.subspan(1);
    if (token.special && !plain.empty() && plain.front().begin < end) {
      position = begin + 1;  // a token that is none may hide the start of one
      continue;
    }
    if (token.single_word && touches_word(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(begin - trailing_space(text.substr(0, begin)), rest);
    if (token.rstrip) end += leading_space(text.substr(end));
    if (begin > rest) segments.push_back({rest, begin, -1});
    segments.push_back({begin, end, token.id});
    rest = end;
  }
  if (rest < text.size()) segments.push_back({rest, text.size(), -1});
  return segments;
}

}  // namespace mote::tokenizer
