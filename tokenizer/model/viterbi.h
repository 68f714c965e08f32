// The best path through a text, for the Unigram models.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/segment/tables.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {

template <typename Score>
struct BestNode {
  int32_t id = -1;
  int32_t begin = -1;  // -1: no path ends here
  Score score = 0;     // of the best path that ends here
};

// The nodes of the best path, first to last, as (id, begin); each ends where the next begins.
// score(id, bytes): of a token, or nothing if the model does not use it. unk_id may be negative.
// A walk down the trie ends after `longest` bytes.
template <typename Score, typename ScoreOf>
std::vector<BestNode<Score>> best_path(const TrieView& trie, std::string_view text, int32_t unk_id, Score unk_score,
                                       size_t longest, ScoreOf score_of) {
  std::vector<BestNode<Score>> ends(text.size() + 1);
  const auto offer = [](BestNode<Score>& node, int32_t id, size_t begin, Score score) {
    if (node.begin < 0 || score > node.score) node = {id, static_cast<int32_t>(begin), score};
  };
  for (size_t begin = 0; begin < text.size();) {
    const Score so_far = ends[begin].score;
    const size_t first_length = first_character(text.substr(begin)).length;
    bool has_single = false;
    uint32_t node = TrieView::kRoot;
    for (size_t end = begin; end < std::min(text.size(), begin + longest);) {
      node = trie.child(node, static_cast<uint8_t>(text[end++]));
      if (node == TrieView::kNone) break;
      const int32_t id = trie.value(node);
      if (id < 0) continue;
      const auto score = score_of(id, end - begin);
      if (!score.has_value()) continue;
      offer(ends[end], id, begin, static_cast<Score>(*score + so_far));
      has_single = has_single || end - begin == first_length;
    }
    if (!has_single) offer(ends[begin + first_length], unk_id, begin, static_cast<Score>(unk_score + so_far));
    begin += first_length;
  }
  std::vector<BestNode<Score>> path;
  for (auto end = static_cast<int32_t>(text.size()); end > 0;) {
    const BestNode<Score>& node = ends[static_cast<size_t>(end)];
    if (node.begin < 0 || node.begin >= end) break;  // only where the trie of a damaged file cuts a character
    path.push_back(node);
    end = node.begin;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace mote::tokenizer
