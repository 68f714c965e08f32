// What ops over a cache check before they use it.
#pragma once

#include "kernels/op.h"

namespace mote {

// positions: int64 [1, T]
inline int64_t position_at(const Tensor& positions, int64_t token) {
  return positions.as<int64_t>()[token * positions.stride(1)];
}

// A cache that a session made for another shape would be read out of bounds.
Status check_cache(const KvCache& cache, const StateShape& shape);
// Checks the positions of tokens [first, first + tokens).
Status check_positions(const KvCache& cache, const Tensor& positions, int64_t first, int64_t tokens);

}  // namespace mote
