// 16 rows of a weight times rows of activations: the one place where weights are multiplied.
#pragma once

#include <cstdint>

#include "kernels/formats.h"
#include "kernels/linear/activations.h"
#include "kernels/tensor.h"

namespace mote {

inline constexpr int64_t kTokenBlock = 32;  // rows of activations that share one unpacked tile

// A matrix [rows, columns]: a weight, or one expert of a stack of them.
struct Matrix {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
  int bits = 0;
  int64_t group_size = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Bytes of a matrix as it is stored: rows of tiles are padded to a multiple of 16.
int64_t matrix_bytes(const Tensor& weight);
// Matrix `index` of a weight [.., rows, columns].
Matrix matrix_of(const Tensor& weight, int64_t index);

// Floats of working memory for one thread.
inline int64_t product_buffer(const Matrix& matrix) {
  return matrix.bits == 0 && matrix.dtype != DType::kFloat32 ? matrix.columns : 0;
}

// out[i][r] = row 16 * block + r of the matrix times activations row tokens[i], or first + i where `tokens` is nullptr;
// at most kTokenBlock of them. Rows past the end give 0. The same bits for every count and order of tokens.
void block_products(const Matrix& matrix, const Activations& activations, int64_t block, const int32_t* tokens, int64_t first,
                    int64_t count, float (*out)[kTileRows], float* buffer);

// The same for 16 rows from any first row.
void row_products(const Matrix& matrix, const Activations& activations, int64_t first_row, const int32_t* tokens,
                  int64_t first, int64_t count, float (*out)[kTileRows], float* buffer);

}  // namespace mote
