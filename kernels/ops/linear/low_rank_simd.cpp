// Thin matrices, rank by rank: 64 elements of a row of results stay in registers while the ranks go by.
#include "kernels/kernel.h"
#include "kernels/ops/linear/kernels.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kVectors = 4;

template <DType kType>
constexpr int64_t kBytes = kType == DType::kFloat32 ? 4 : 2;

template <DType kType>
MOTE_INLINE F32x16 load_elements(const std::byte* from) {
  if constexpr (kType == DType::kFloat16) return load_f16(from);
  if constexpr (kType == DType::kBFloat16) return load_bf16(from);
  return load_f32(reinterpret_cast<const float*>(from));
}

template <DType kType>
MOTE_INLINE F32x16 load_first(const std::byte* from, int64_t count) {
  alignas(64) std::byte all[16 * kBytes<kType>] = {};
  std::memcpy(all, from, static_cast<size_t>(kBytes<kType> * count));
  return load_elements<kType>(all);
}

template <DType kType>
MOTE_INLINE void add_vectors(const std::byte* rows, int64_t row_bytes, int64_t rank, const float* x, float* y) {
  F32x16 sums[kVectors];
  for (F32x16& sum : sums) sum = splat(0.0f);
  for (int64_t r = 0; r < rank; ++r) {
    const F32x16 factor = splat(x[r]);
    const std::byte* row = rows + r * row_bytes;
    for (int v = 0; v < kVectors; ++v)
      sums[v] = fma(load_elements<kType>(row + 16 * v * kBytes<kType>), factor, sums[v]);
    // What the next call reads: too little of each row for the hardware to see that it follows.
    constexpr int64_t kRead = 16 * kVectors * kBytes<kType>;
    for (int64_t at = 0; at < kRead; at += 64) __builtin_prefetch(row + kRead + at);
  }
  for (int v = 0; v < kVectors; ++v) store_f32(y + 16 * v, load_f32(y + 16 * v) + sums[v]);
}

template <DType kType>
MOTE_INLINE void add_rest(const std::byte* rows, int64_t row_bytes, int64_t rank, const float* x, int64_t count,
                          float* y) {
  F32x16 sum = splat(0.0f);
  for (int64_t r = 0; r < rank; ++r) {
    const std::byte* row = rows + r * row_bytes;
    sum = fma(count == 16 ? load_elements<kType>(row) : load_first<kType>(row, count), splat(x[r]), sum);
  }
  store_upto(y, load_upto(y, count) + sum, count);
}

template <DType kType>
void add_typed(const std::byte* rows, int64_t row_bytes, int64_t rank, const float* x, int64_t tokens, int64_t count,
               float* y, int64_t stride) {
  for (int64_t t = 0; t < tokens; ++t) {
    float* to = y + t * stride;
    int64_t i = 0;
    for (; i + 16 * kVectors <= count; i += 16 * kVectors)
      add_vectors<kType>(rows + i * kBytes<kType>, row_bytes, rank, x + t * rank, to + i);
    for (; i < count; i += 16)
      add_rest<kType>(rows + i * kBytes<kType>, row_bytes, rank, x + t * rank, count - i < 16 ? count - i : 16, to + i);
  }
}

void add(const std::byte* rows, DType dtype, int64_t pitch, int64_t rank, const float* x, int64_t tokens, int64_t count,
         float* y, int64_t stride) {
  switch (dtype) {
    case DType::kFloat16: return add_typed<DType::kFloat16>(rows, 2 * pitch, rank, x, tokens, count, y, stride);
    case DType::kBFloat16: return add_typed<DType::kBFloat16>(rows, 2 * pitch, rank, x, tokens, count, y, stride);
    default: return add_typed<DType::kFloat32>(rows, 4 * pitch, rank, x, tokens, count, y, stride);
  }
}

constexpr LowRankProducts kLowRank = {add};

bool takes_dense(const WeightKind& kind) { return kind.bits == 0; }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "low_rank_64_" MOTE_ISA_NAME, .role = LowRankProducts::kRole, .needs = kNeeds,
                     .rank = kRank, .takes = takes_dense, .functions = &kLowRank);

}  // namespace MOTE_ISA
}  // namespace mote
