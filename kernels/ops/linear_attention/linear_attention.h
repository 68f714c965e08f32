// The inner work of mote.linear_attention: rows of the state of heads that share queries and keys.
#pragma once

#include <cstdint>
#include <string_view>

namespace mote {

// A float for each token: where the first lies, and how far the next.
struct TokenSeries {
  const float* first = nullptr;
  int64_t step = 0;
};

struct LinearAttentionRow {
  float* state = nullptr;       // [N]
  const float* from = nullptr;  // where `replay` reads it
  TokenSeries v{};
  TokenSeries decay{};      // first == nullptr: none
  TokenSeries beta{};       // first == nullptr: what is added is v itself
  float* y = nullptr;       // of the first token
  float* update = nullptr;  // of the first token: where what was added along the keys goes; nullptr: nowhere
};

constexpr int kLinearAttentionRows = 4;  // at once

struct LinearAttentionTokens {
  TokenSeries q, k;  // of the first of N neighbours
  int64_t tokens = 0;
  int64_t width = 0;             // N
  int64_t y_step = 0;            // from one token's y to the next's
  int64_t update_step = 0;       // from one token's update to the next's
  bool decay_is_vector = false;  // N neighbours each token, or one for the row
};

struct LinearAttentionFunctions {
  static constexpr std::string_view kRole = "linear_attention";

  // Runs 1 to kLinearAttentionRows rows through all tokens.
  void (*run)(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count);
  // Moves them on by updates that were made, in place of v, without q, beta and y: the bits of `state` are those that
  // `run` left. Without tokens it copies.
  void (*replay)(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count);
};

}  // namespace mote
