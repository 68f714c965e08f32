// Dense weights of float32, float16 or bfloat16: dot products of 16 lanes, four rows by up to four tokens in registers.
#include "kernels/kernel.h"
#include "kernels/ops/linear/kernels.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kRowsAtOnce = 4;
constexpr int kTokensAtOnce = 4;
constexpr int64_t kFetchAhead = 1024;

template <DType kType>
MOTE_INLINE F32x16 load_weights(const std::byte* row, int64_t k) {
  if constexpr (kType == DType::kFloat16) return load_f16(row + 2 * k);
  if constexpr (kType == DType::kBFloat16) return load_bf16(row + 2 * k);
  return load_f32(reinterpret_cast<const float*>(row + 4 * k));
}

// The last, fewer than 16 elements of a row.
template <DType kType>
MOTE_INLINE F32x16 load_tail(const std::byte* row, int64_t k, int64_t count) {
  constexpr int64_t kBytes = kType == DType::kFloat32 ? 4 : 2;
  alignas(64) std::byte all[16 * kBytes] = {};
  std::memcpy(all, row + kBytes * k, static_cast<size_t>(kBytes * count));
  return load_weights<kType>(all, 0);
}

template <DType kType, int kRows, int kTokens>
void multiply_tile(const std::byte* rows, int64_t row_bytes, int64_t columns, const float* x, int64_t x_stride,
                   float* y, int64_t stride) {
  F32x16 sums[kRows][kTokens];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) sums[r][t] = splat(0.0f);
  }
  int64_t k = 0;
  for (; k + 16 <= columns; k += 16) {
    F32x16 values[kTokens];
    for (int t = 0; t < kTokens; ++t) values[t] = load_f32(x + t * x_stride + k);
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(rows + r * row_bytes + k * (kType == DType::kFloat32 ? 4 : 2) + kFetchAhead);
      const F32x16 weights = load_weights<kType>(rows + r * row_bytes, k);
      for (int t = 0; t < kTokens; ++t) sums[r][t] = fma(weights, values[t], sums[r][t]);
    }
  }
  for (int r = 0; r < kRows && k < columns; ++r) {
    const F32x16 weights = load_tail<kType>(rows + r * row_bytes, k, columns - k);
    for (int t = 0; t < kTokens; ++t)
      sums[r][t] = fma(weights, load_part(x + t * x_stride + k, columns - k), sums[r][t]);
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) y[t * stride + r] = sum_lanes(sums[r][t]);
  }
}

template <DType kType, int kRows>
void multiply_rows(const DenseRows& w, int64_t row, const float* x, int64_t x_stride, int64_t tokens, float* y,
                   int64_t stride) {
  const std::byte* rows = w.rows + row * w.row_bytes;
  int64_t t = 0;
  for (; t + kTokensAtOnce <= tokens; t += kTokensAtOnce) {
    multiply_tile<kType, kRows, kTokensAtOnce>(rows, w.row_bytes, w.columns, x + t * x_stride, x_stride,
                                               y + t * stride + row, stride);
  }
  for (; t < tokens; ++t) {
    multiply_tile<kType, kRows, 1>(rows, w.row_bytes, w.columns, x + t * x_stride, x_stride, y + t * stride + row,
                                   stride);
  }
}

template <DType kType>
void multiply_typed(const DenseRows& w, const float* x, int64_t x_stride, int64_t tokens, float* y, int64_t stride) {
  int64_t row = 0;
  for (; row + kRowsAtOnce <= w.count; row += kRowsAtOnce) {
    multiply_rows<kType, kRowsAtOnce>(w, row, x, x_stride, tokens, y, stride);
  }
  for (; row < w.count; ++row) multiply_rows<kType, 1>(w, row, x, x_stride, tokens, y, stride);
}

void multiply(const DenseRows& w, const float* x, int64_t x_stride, int64_t tokens, float* y, int64_t stride) {
  switch (w.dtype) {
    case DType::kFloat16: return multiply_typed<DType::kFloat16>(w, x, x_stride, tokens, y, stride);
    case DType::kBFloat16: return multiply_typed<DType::kBFloat16>(w, x, x_stride, tokens, y, stride);
    default: return multiply_typed<DType::kFloat32>(w, x, x_stride, tokens, y, stride);
  }
}

constexpr DenseProducts kDense = {multiply};

bool takes_dense(const WeightKind& kind) { return kind.bits == 0; }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "dense_4x4_" MOTE_ISA_NAME, .role = DenseProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .takes = takes_dense, .functions = &kDense);

}  // namespace MOTE_ISA
}  // namespace mote
