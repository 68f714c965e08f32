// The UTF-8 of a range of code points, as sequences of byte ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "runner/grammars/expression.h"

namespace mote::constraints {

struct ByteRange {
  uint8_t low = 0;
  uint8_t high = 0;  // included
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

using ByteSequence = std::vector<ByteRange>;  // one range a byte

// The texts of `range`, which has no surrogates, are exactly those of the sequences, each in one of them.
// Source: Russ Cox, "Regular Expression Matching in the Wild"
void append_utf8_sequences(CodePointRange range, std::vector<ByteSequence>& sequences);

}  // namespace mote::constraints
