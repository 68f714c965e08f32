#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end));
}

bool touches(std::span<const TextRange> ranges, size_t begin, size_t end) {
  const auto behind = [](const TextRange& range, size_t position) { return range.end <= position; };
  const auto range = std::lower_bound(ranges.begin(), ranges.end(), begin, behind);
  return range != ranges.end() && range->begin < end;
}

bool is_plain(const AddedOptions& options, const AlignedText* origins, size_t begin, size_t end) {
  if (options.plain.empty()) return false;
  if (origins == nullptr || !origins->tracked()) return touches(options.plain, begin, end);
  return touches(options.plain, origins->origin(begin).begin, origins->origin(end - 1).end);
}

}  // namespace

Result<AddedTokens> AddedTokens::make(const fb::Segment& segment, const fb::Trie* trie) {
  AddedTokens added;
  added.trie_ = TrieView(trie);
  const uint32_t num_ids = segment.token_flags()->size();
  for (uint32_t i = 0; i < segment.added()->size(); ++i) {
    const fb::AddedToken& token = *segment.added()->Get(i);
    MOTE_REQUIRE(token.id() >= 0 && static_cast<uint32_t>(token.id()) < num_ids, Code::kInvalidTokenizer,
                 "added[%u].id = %d: must be below %u", i, token.id(), num_ids);
    added.tokens_.push_back({token.id(), token.special(), token.single_word(), token.lstrip(), token.rstrip()});
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    added.starts_[byte] = added.trie_.child(TrieView::kRoot, static_cast<uint8_t>(byte)) != TrieView::kNone;
  }
  return added;
}

std::vector<Segment> AddedTokens::split(std::string_view text, const AddedOptions& options,
                                        const AlignedText* origins) const {
  std::vector<Segment> segments;
  size_t rest = 0;  // start of what no segment covers yet
  size_t position = trie_.empty() ? text.size() : 0;
  while (position < text.size()) {
    if (!starts_[static_cast<unsigned char>(text[position])]) {
      ++position;
      continue;
    }
    const TrieView::Found found = trie_.longest_prefix(text.substr(position));
    if (found.length == 0 || static_cast<size_t>(found.value) >= tokens_.size() ||
        is_plain(options, origins, position, position + found.length)) {
      ++position;
      continue;
    }
    const Flags& token = tokens_[static_cast<size_t>(found.value)];
    size_t begin = position;
    size_t end = position + found.length;
    position = end;
    if (token.special && !options.parse_special) continue;
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
