// What attention over a cache works with: the sizes of a call, and the memory of each thread.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/ops/attention/tasks.h"
#include "kernels/support/contract.h"
#include "kernels/support/scratch.h"

namespace mote {

inline constexpr int64_t kMostSplits = 128;                  // in one parallel region
inline constexpr int64_t kPartialFloats = int64_t{1} << 18;  // that their partial results may take

// Elements of keys that are summed to get the first value_dim: keys that were rotated are turned back as a whole.
inline int64_t summed_dim(KvType type, int64_t head_dim, int64_t value_dim) {
  return type == KvType::kInt4 && head_dim % 16 == 0 ? head_dim : value_dim;
}

// Queries that read one head of a cache are rows, token by token; 32 rows are a tile. A unit is a tile of any head.
// Tokens are those of one sequence.
struct AttentionShape {
  int64_t heads, kv_heads, tokens, head_dim;
  int64_t value_head_dim;  // elements that are summed
  bool values_in_keys;

  static AttentionShape of(const Call& call, int64_t tokens, KvType type) {
    const Tensor& q = *call.inputs[kQuery];
    const AttentionParams& params = call.get_params<AttentionParams>();
    const StateShape& state = call.state_shapes[static_cast<size_t>(params.state)];
    const int64_t summed =
        params.value_dim > 0 ? summed_dim(type, q.size(3), params.value_dim) : int64_t{state.value_head_dim};
    return {q.size(1), state.num_heads, tokens, q.size(3), summed, params.value_dim > 0};
  }
  int64_t group() const { return heads / kv_heads; }
  int64_t rows() const { return group() * tokens; }  // of a head of the cache
  int64_t tiles() const { return (rows() + kQueryRows - 1) / kQueryRows; }
  int64_t units() const { return kv_heads * tiles(); }
  int64_t width() const { return padded_width(value_head_dim); }
  // Are there too few tiles to keep the threads busy?
  bool splits_context(int num_threads) const { return units() < int64_t{4} * num_threads; }
  // Splits that one parallel region handles.
  int64_t splits_at_once() const {
    const int64_t floats = std::max<int64_t>(1, units() * std::min<int64_t>(rows(), kQueryRows) * (width() + 2));
    return std::clamp<int64_t>(kPartialFloats / floats, 1, kMostSplits);
  }
};

inline SoftmaxSums take_sums(Scratch& scratch, int64_t rows, int64_t width) {
  SoftmaxSums sums;
  sums.maxima = scratch.take<float>(rows);
  sums.totals = scratch.take<float>(rows);
  sums.sums = scratch.take<float>(rows * width);
  return sums;
}

inline size_t sums_bytes(int64_t rows, int64_t width) {
  return 2 * array_bytes<float>(rows) + array_bytes<float>(rows * width);
}

inline void clear_sums(const SoftmaxSums& sums, int64_t rows, int64_t width) {
  std::fill_n(sums.maxima, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(sums.totals, rows, 0.0f);
  std::fill_n(sums.sums, rows * width, 0.0f);
}

// What one thread works with.
struct AttentionWorkspace {
  QueryTile tile;
  SoftmaxSums part, sums;
  const int64_t** chosen = nullptr;  // [kQueryRows], what the tile has if the call has it
  const float** biases = nullptr;
  float* key = nullptr;    // [head_dim], for rows of strided elements and turned ones
  float* value = nullptr;  // [value_head_dim]

  static size_t bytes(const AttentionShape& shape) {
    const int64_t dim = shape.head_dim, groups = (dim + kKvGroup - 1) / kKvGroup;
    return array_bytes<float>(kQueryRows * dim) + 2 * array_bytes<float>(kQueryRows) +
           array_bytes<int64_t>(kQueryRows) + array_bytes<int16_t>(kQueryRows * padded_width(dim)) +
           array_bytes<float>(kQueryRows * groups) + array_bytes<float>(kQueryRows * kSplitLanes) +
           2 * array_bytes<int16_t>(kQueryRows * kSplitLanes) + array_bytes<uint32_t>(kQueryRows * kSplitBlocks) +
           array_bytes<const int64_t*>(kQueryRows) + array_bytes<const float*>(kQueryRows) +
           2 * sums_bytes(kQueryRows, shape.width()) + array_bytes<float>(dim) +
           array_bytes<float>(shape.value_head_dim) + array_bytes<std::byte>(kWideBytes);
  }

  AttentionWorkspace(std::span<std::byte> memory, const AttentionShape& shape) {
    Scratch scratch(memory);
    const int64_t dim = shape.head_dim, groups = (dim + kKvGroup - 1) / kKvGroup;
    tile.queries = scratch.take<float>(kQueryRows * dim);
    tile.slopes = scratch.take<float>(kQueryRows);
    tile.weight_scales = scratch.take<float>(kQueryRows);
    tile.positions = scratch.take<int64_t>(kQueryRows);
    tile.codes = scratch.take<int16_t>(kQueryRows * padded_width(dim));
    tile.code_scales = scratch.take<float>(kQueryRows * groups);
    tile.scores = scratch.take<float>(kQueryRows * kSplitLanes);
    tile.weights = scratch.take<int16_t>(kQueryRows * kSplitLanes);
    tile.scaled = scratch.take<int16_t>(kQueryRows * kSplitLanes);
    tile.visible = scratch.take<uint32_t>(kQueryRows * kSplitBlocks);
    chosen = scratch.take<const int64_t*>(kQueryRows);
    biases = scratch.take<const float*>(kQueryRows);
    part = take_sums(scratch, kQueryRows, shape.width());
    sums = take_sums(scratch, kQueryRows, shape.width());
    key = scratch.take<float>(dim);
    value = scratch.take<float>(shape.value_head_dim);
    tile.wide = scratch.take<std::byte>(kWideBytes);
  }
};

}  // namespace mote
