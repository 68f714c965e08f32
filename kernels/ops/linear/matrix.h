// A weight as rows of a product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/formats.h"
#include "kernels/tensor.h"

namespace mote {

// A matrix [rows, columns]: a weight, or one expert of a stack of them.
struct Matrix {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
  int bits = 0;  // 0: dense
  int64_t group_size = 0;
  int64_t rows = 0;
  int64_t columns = 0;

  // Blocks of 16 rows.
  int64_t num_blocks() const { return (rows + kTileRows - 1) / kTileRows; }
  int64_t block_bytes() const { return mote::block_bytes(bits, group_size, columns / group_size); }
};

// Matrix `index` of a weight [.., rows, columns].
inline Matrix matrix_of(const Tensor& weight, int64_t index) {
  return {weight.as<const std::byte>() + index * matrix_bytes(weight),
          weight.dtype,
          weight.bits,
          weight.group_size,
          weight.size(-2),
          weight.size(-1)};
}

}  // namespace mote
