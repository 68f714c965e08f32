// Merging of neighbours by rank, which all byte pair encodings end in.
// Source: arXiv 1508.07909; tokenizers models/bpe/word.rs (Word::merge_all)
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

struct Symbol {
  int32_t id = 0;
  uint32_t length = 0;  // bytes of the piece
};

// Merges until no pair of neighbours is left that merges: the lowest rank first, then the leftmost pair.
// Cost: O(n log n), and less for a few symbols.
void merge_symbols(const MergesView& merges, std::vector<Symbol>& symbols);

}  // namespace mote::tokenizer
