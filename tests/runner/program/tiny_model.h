// A hand-made program of one transformer layer over the real kernels: quantised tied embedding, RoPE, grouped-query
// attention, gated feed-forward. Methods prefill, decode and verify.
#pragma once

#include "tests/runner/program/program_builder.h"

namespace mote::test {

struct TinyModelOptions {
  int32_t vocab_size = 19;
  int32_t window = 0;      // sliding window of the layer's cache, 0: none
  uint32_t seed = 1;       // of the weights
  int32_t width = 1;       // how many times 32 the hidden and the inner dimension are; heads likewise
  bool delegates = false;  // parts of tests/runner/program/fake_backend.h behind the embedding
};

ProgramBuilder tiny_model(const TinyModelOptions& options = {});

}  // namespace mote::test
