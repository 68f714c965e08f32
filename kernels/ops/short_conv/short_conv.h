// The inner work of mote.short_conv: 1 to 16 neighbouring channels through all tokens of a sequence.
#pragma once

#include <cstdint>
#include <string_view>

namespace mote {

struct ShortConvBlock {
  const float* x = nullptr;       // of the first channel and token; channels are neighbours
  int64_t x_step = 0;             // from one token to the next
  const float* weight = nullptr;  // [channels, taps]
  const float* bias = nullptr;    // nullptr: none
  float* state = nullptr;         // of the first channel: taps - 1 rows
  float* y = nullptr;             // of the first channel and token
  int64_t row = 0;                // from one row of the state, or token of y, to the next
  int64_t taps = 0, tokens = 0;
  int64_t channels = 0;
};

struct ShortConvFunctions {
  static constexpr std::string_view kRole = "short_conv";
  static constexpr int64_t kChannels = 16, kMaxTaps = 256;

  // Writes y, and leaves the last taps - 1 rows of the state followed by x in the state. taps <= kMaxTaps.
  void (*run)(const ShortConvBlock& block);
};

}  // namespace mote
