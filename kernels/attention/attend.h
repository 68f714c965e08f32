// Softmax attention of a few queries over a cache, in blocks of positions: no matrix of scores is ever held.
#pragma once

#include <cstdint>

#include "kernels/scratch.h"
#include "kernels/state.h"

namespace mote {

inline constexpr int64_t kKeyBlock = 32;    // positions [32 j, 32 j + 32) are one block, for every query and every call
inline constexpr int64_t kQueryRows = 64;   // most queries (heads x tokens) of one task

struct AttentionParams {
  int64_t state = 0;
  int64_t window = 0;
  float scale = 1;
  float softcap = 0;
};

// Running softmax of some queries that read the same head of the cache.
struct QueryBlock {
  float* queries = nullptr;      // [rows, head_dim]
  float* sums = nullptr;         // [rows, value_head_dim], weighted values
  float* maxima = nullptr;       // [rows]
  float* totals = nullptr;       // [rows], sum of weights
  float* slopes = nullptr;       // [rows], ALiBi
  int64_t* positions = nullptr;  // [rows]
  float* keys = nullptr;         // [kKeyBlock, head_dim], for caches that need converting
  float* values = nullptr;       // [kKeyBlock, value_head_dim]
  int64_t rows = 0;

  static size_t bytes(int64_t head_dim, int64_t value_head_dim);
  void place(Scratch& scratch, int64_t head_dim, int64_t value_head_dim);
};

// Fills sums, maxima and totals from all positions of head `head` that each query sees: those not behind it, within the
// window or among the first num_sinks, and held by the cache. The bits of a row do not depend on the other rows.
void attend(const KvCache& cache, int64_t head, const AttentionParams& params, QueryBlock& block);

}  // namespace mote
