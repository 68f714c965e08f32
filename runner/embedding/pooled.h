// The vector of one text, made of the hidden states of its tokens one by one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runner/embedding/embedding_config.h"

namespace mote {

// Sums are in float64 and in the order of the tokens, so that the bits do not depend on how a text is cut into calls.
class Pooled {
 public:
  // skipped: tokens at the start that do not count
  void start(Pooling pooling, size_t dimensions, int64_t skipped);
  // The hidden states of the next token, [dimensions].
  void add(std::span<const float> hidden);
  // What counts of the tokens so far: its first to.size() dimensions, divided by their length if `normalized`. A vector
  // of zeros stays as it is.
  void write(bool normalized, std::span<float> to) const;

 private:
  Pooling pooling_ = Pooling::kMean;
  int64_t skipped_ = 0;
  int64_t num_seen_ = 0;
  double weight_ = 0.0;  // of all that was added
  std::vector<double> values_;
};

}  // namespace mote
