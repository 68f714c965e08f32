#include "kernels/linear/products.h"

#include <algorithm>

#include "kernels/float_bits.h"
#include "kernels/simd.h"

namespace mote {

namespace {

using UShort8 = uint16_t __attribute__((vector_size(16)));

constexpr int64_t kMaxGroup = 256;

struct Selection {
  const int32_t* tokens;
  int64_t first;
  int64_t count;
  int64_t operator[](int64_t i) const { return tokens == nullptr ? first + i : tokens[i]; }
};

void load_scales(const std::byte* tile, int bits, int64_t group_size, float* scales) {
  uint16_t halves[kTileRows];
  std::memcpy(halves, tile + kTileRows * group_size * bits / 8, sizeof(halves));
  for (int r = 0; r < kTileRows; ++r) scales[r] = float16_to_float32(halves[r]);
}

// Codes of a tile as int16, four vectors of four rows for every pair of columns.
void unpack_pairs(const std::byte* tile, int bits, int64_t group_size, Short8* pairs) {
  const int64_t blocks = group_size * bits / 32;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int i = 0; i < 4; ++i) {
      const UShort8 v = load<UShort8>(tile + 64 * b + 16 * i);
      if (bits == 8) {
        pairs[8 * b + i] = std::bit_cast<Short8>(v << 8) >> 8;
        pairs[8 * b + 4 + i] = std::bit_cast<Short8>(v) >> 8;
      } else {
        pairs[16 * b + i] = std::bit_cast<Short8>(v & 15) - 8;
        pairs[16 * b + 4 + i] = std::bit_cast<Short8>((v >> 8) & 15) - 8;
        pairs[16 * b + 8 + i] = std::bit_cast<Short8>((v >> 4) & 15) - 8;
        pairs[16 * b + 12 + i] = std::bit_cast<Short8>(v >> 12) - 8;
      }
    }
  }
}

// One group: exact integer sums, then one product and one sum in float32 for each row.
void add_codes(const Short8* pairs, int64_t group_size, const int16_t* codes, const float* scales, float* out) {
  Int4 sums[4] = {};
  for (int64_t p = 0; p < group_size / 2; ++p) {
    const int32_t pair = load<int32_t>(codes + 2 * p);
    const Short8 both = std::bit_cast<Short8>(Int4{pair, pair, pair, pair});
    for (int i = 0; i < 4; ++i) sums[i] += multiply_add_pairs(pairs[4 * p + i], both);
  }
  for (int i = 0; i < 4; ++i) {
    const Float4 sum = __builtin_convertvector(sums[i], Float4);
    store(out + 4 * i, load<Float4>(out + 4 * i) + load<Float4>(scales + 4 * i) * sum);
  }
}

void code_products(const Matrix& m, const Activations& x, const std::byte* tile, const Selection& selection,
                   float (*out)[kTileRows]) {
  Short8 pairs[2 * kMaxGroup];
  float scales[kTileRows];
  for (int64_t g = 0; g < m.columns / m.group_size; ++g, tile += tile_bytes(m.bits, m.group_size)) {
    unpack_pairs(tile, m.bits, m.group_size, pairs);
    load_scales(tile, m.bits, m.group_size, scales);
    for (int64_t i = 0; i < selection.count; ++i) {
      add_codes(pairs, m.group_size, x.codes + selection[i] * x.width + g * m.group_size, scales, out[i]);
    }
  }
  for (int64_t i = 0; i < selection.count; ++i) {
    const float scale = x.scales[selection[i]];
    for (int r = 0; r < kTileRows; ++r) out[i][r] = scale * out[i][r];
  }
}

// Codes of a tile as float32, the 16 rows of each column side by side.
void unpack_columns(const std::byte* tile, int bits, int64_t group_size, Float4* columns) {
  const int64_t blocks = group_size * bits / 32;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int i = 0; i < 4; ++i) {
      const Int4 v = load<Int4>(tile + 64 * b + 16 * i);
      for (int j = 0; j < 4; ++j) {
        if (bits == 8) {
          columns[4 * (4 * b + j) + i] = __builtin_convertvector((v << (24 - 8 * j)) >> 24, Float4);
        } else {
          columns[4 * (8 * b + j) + i] = __builtin_convertvector(((v >> (8 * j)) & 15) - 8, Float4);
          columns[4 * (8 * b + 4 + j) + i] = __builtin_convertvector(((v >> (8 * j + 4)) & 15) - 8, Float4);
        }
      }
    }
  }
}

void add_columns(const Float4* columns, int64_t group_size, const float* x, const float* scales, float* out) {
  Float4 sums[4] = {};
  for (int64_t k = 0; k < group_size; ++k) {
    const Float4 value = broadcast(x[k]);
    for (int i = 0; i < 4; ++i) sums[i] += columns[4 * k + i] * value;
  }
  for (int i = 0; i < 4; ++i) store(out + 4 * i, load<Float4>(out + 4 * i) + load<Float4>(scales + 4 * i) * sums[i]);
}

void dequantised_products(const Matrix& m, const Activations& x, const std::byte* tile, const Selection& selection,
                          float (*out)[kTileRows]) {
  Float4 columns[4 * kMaxGroup];
  float scales[kTileRows];
  for (int64_t g = 0; g < m.columns / m.group_size; ++g, tile += tile_bytes(m.bits, m.group_size)) {
    unpack_columns(tile, m.bits, m.group_size, columns);
    load_scales(tile, m.bits, m.group_size, scales);
    for (int64_t i = 0; i < selection.count; ++i) {
      add_columns(columns, m.group_size, x.values + selection[i] * x.width + g * m.group_size, scales, out[i]);
    }
  }
}

void dense_products(const Matrix& m, const Activations& x, int64_t first_row, const Selection& selection,
                    float (*out)[kTileRows], float* buffer) {
  const int64_t rows = std::min<int64_t>(kTileRows, m.rows - first_row);
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* stored = m.data + (first_row + r) * m.columns * dtype_bytes(m.dtype);
    const float* row = reinterpret_cast<const float*>(stored);
    if (m.dtype != DType::kFloat32) {
      to_float32(stored, m.dtype, m.columns, buffer);
      row = buffer;
    }
    int64_t i = 0;
    for (; i + 2 <= selection.count; i += 2) {
      const float* pair[2] = {x.values + selection[i] * x.width, x.values + selection[i + 1] * x.width};
      float sums[2];
      dot_rows<2>(row, pair, m.columns, sums);
      out[i][r] = sums[0];
      out[i + 1][r] = sums[1];
    }
    if (i < selection.count) out[i][r] = dot(row, x.values + selection[i] * x.width, m.columns);
  }
}

}  // namespace

int64_t matrix_bytes(const Tensor& weight) {
  const int64_t rows = weight.size(-2), columns = weight.size(-1);
  if (weight.bits == 0) return rows * columns * dtype_bytes(weight.dtype);
  return (rows + kTileRows - 1) / kTileRows * (columns / weight.group_size) * tile_bytes(weight.bits, weight.group_size);
}

Matrix matrix_of(const Tensor& weight, int64_t index) {
  return {weight.as<const std::byte>() + index * matrix_bytes(weight), weight.dtype, weight.bits, weight.group_size,
          weight.size(-2), weight.size(-1)};
}

void block_products(const Matrix& matrix, const Activations& activations, int64_t block, const int32_t* tokens, int64_t first,
                    int64_t count, float (*out)[kTileRows], float* buffer) {
  const Selection selection{tokens, first, count};
  std::fill(out[0], out[0] + count * kTileRows, 0.0f);
  if (matrix.bits == 0) {
    dense_products(matrix, activations, block * kTileRows, selection, out, buffer);
    return;
  }
  const int64_t groups = matrix.columns / matrix.group_size;
  const std::byte* tile = matrix.data + block * groups * tile_bytes(matrix.bits, matrix.group_size);
  if (activations.codes != nullptr) {
    code_products(matrix, activations, tile, selection, out);
  } else {
    dequantised_products(matrix, activations, tile, selection, out);
  }
}

void row_products(const Matrix& matrix, const Activations& activations, int64_t first_row, const int32_t* tokens,
                  int64_t first, int64_t count, float (*out)[kTileRows], float* buffer) {
  const int64_t block = first_row / kTileRows, shift = first_row % kTileRows;
  if (shift == 0) return block_products(matrix, activations, block, tokens, first, count, out, buffer);
  if (matrix.bits == 0) {
    std::fill(out[0], out[0] + count * kTileRows, 0.0f);
    return dense_products(matrix, activations, first_row, {tokens, first, count}, out, buffer);
  }
  float next[kTokenBlock][kTileRows] = {};
  block_products(matrix, activations, block, tokens, first, count, out, buffer);
  if ((block + 1) * kTileRows < matrix.rows) {
    block_products(matrix, activations, block + 1, tokens, first, count, next, buffer);
  }
  for (int64_t i = 0; i < count; ++i) {
    std::copy(out[i] + shift, out[i] + kTileRows, out[i]);
    std::copy(next[i], next[i] + shift, out[i] + kTileRows - shift);
  }
}

}  // namespace mote
