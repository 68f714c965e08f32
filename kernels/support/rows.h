// Tensors seen as rows: the last dimension is a row.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/support/strided_loop.h"

namespace mote {

// The `row`-th row as contiguous floats in `to`.
inline void copy_row(const Tensor& tensor, int64_t row, float* to) {
  const int64_t length = row_length(tensor);
  const float* from = tensor.as<float>() + row_offset(tensor, row);
  const int64_t stride = tensor.rank == 0 ? 1 : tensor.stride(-1);
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(length) * sizeof(float));
  } else {
    for (int64_t i = 0; i < length; ++i) to[i] = from[i * stride];
  }
}

// The `row`-th row where it lies, or copied to `buffer` if its elements are strided.
inline const float* read_row(const Tensor& tensor, int64_t row, float* buffer) {
  if (tensor.rank == 0 || tensor.stride(-1) == 1) return tensor.as<float>() + row_offset(tensor, row);
  copy_row(tensor, row, buffer);
  return buffer;
}

// Rows that are worth handing to a thread when each costs `work` operations.
inline int64_t row_grain(int64_t work) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1)); }

}  // namespace mote
