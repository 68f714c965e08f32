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
  TileScales scales;
  int64_t rows = 0;
  int64_t columns = 0;

  // Blocks of 16 rows.
  int64_t num_blocks() const { return (rows + kTileRows - 1) / kTileRows; }
  TileLayout layout() const { return {bits, group_size, scales}; }
  int64_t block_bytes() const { return layout().block_bytes(columns); }
};

// One row of a matrix of tiles as floats. y: [columns]. Rounds once: scale * code + low, the product exact in float32
// up to 24 bits, then times the scale of the row, or for multipliers scale * (multiplier * code).
void dequantise_row(const Matrix& matrix, int64_t row, float* y);

// Matrix `index` of a weight [.., rows, columns].
inline Matrix matrix_of(const Tensor& weight, int64_t index) {
  return {weight.as<const std::byte>() + index * matrix_bytes(weight),
          weight.dtype,
          weight.bits,
          weight.group_size,
          weight.scales,
          weight.size(-2),
          weight.size(-1)};
}

}  // namespace mote
