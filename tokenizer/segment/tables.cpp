#include "tokenizer/segment/tables.h"

#include <algorithm>

namespace mote::tokenizer {

TrieView::TrieView(const fb::Trie* trie) {
  children_of_root_.fill(kNone);
  if (trie == nullptr || trie->first_edges()->size() == 0) return;
  first_edges_ = trie->first_edges()->data();
  labels_ = trie->labels()->data();
  values_ = trie->values()->data();
  num_nodes_ = trie->first_edges()->size() - 1;
  num_edges_ = trie->labels()->size();
  num_values_ = trie->values()->size();
  if (num_nodes_ == 0) return;
  for (size_t label = 0; label < 256; ++label) children_of_root_[label] = search(kRoot, static_cast<uint8_t>(label));
}

uint32_t TrieView::search(uint32_t node, uint8_t label) const {
  if (node >= num_nodes_) return kNone;
  const size_t begin = std::min<size_t>(first_edges_[node], num_edges_);
  const size_t end = std::min<size_t>(first_edges_[node + 1], num_edges_);
  if (begin >= end) return kNone;
  const uint8_t* found = std::lower_bound(labels_ + begin, labels_ + end, label);
  if (found == labels_ + end || *found != label) return kNone;
  return static_cast<uint32_t>(found - labels_) + 1;
}

TrieView::Found TrieView::longest_prefix(std::string_view text) const {
  Found found;
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<uint8_t>(text[i]));
    if (node == kNone) break;
    if (const int32_t end = value(node); end >= 0) found = {end, i + 1};
  }
  return found;
}

}  // namespace mote::tokenizer
