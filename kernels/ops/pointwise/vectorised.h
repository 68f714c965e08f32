// The elementwise ops of float32 that language models use in a step, over contiguous blocks.
#pragma once

#include <cstdint>
#include <string_view>

namespace mote::pointwise {

struct Parameters;

// output [count] from inputs [count] of one dtype; the output may be an input.
using BlockFunction = void (*)(const void* const* inputs, void* output, int64_t count, const Parameters& parameters);

struct Vectorised {
  static constexpr std::string_view kRole = "pointwise";
  BlockFunction add, sub, mul, div;
  BlockFunction exp, tanh, sigmoid, silu, gelu_tanh, relu, square;
};

}  // namespace mote::pointwise
