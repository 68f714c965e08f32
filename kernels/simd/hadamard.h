// The rotation of rows before they are rounded to int8, and its inverse: docs/ops.md says what it is, and
// llm_export/capture/hadamard.py has the same in PyTorch. Like vectors.h, only for *_simd.cpp and *_ISA.cpp.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

// Signs of columns 16 i .. 16 i + 15 by the Rudin-Shapiro sequence: those of 0 .. 15, the upper half flipped where i is
// odd, all of them flipped where i has an odd number of neighbouring ones.
MOTE_INLINE F32x16 flip_signs(F32x16 x, int64_t i) {
  static constexpr float kSigns[2][16] = {{1, 1, 1, -1, 1, 1, -1, 1, 1, 1, 1, -1, -1, -1, 1, -1},
                                          {1, 1, 1, -1, 1, 1, -1, 1, -1, -1, -1, 1, 1, 1, -1, 1}};
  const auto index = static_cast<uint64_t>(i);
  const float all = (std::popcount(index & index >> 1) & 1) != 0 ? -1.0f : 1.0f;
  return x * (load_f32(kSigns[index & 1]) * splat(all));
}

#if defined(__AVX512F__)
inline constexpr int kMostTogether = 8;  // vectors whose sums and differences the registers hold
#else
inline constexpr int kMostTogether = 4;
#endif

// Sums and differences of vectors 1, 2 .. kCount / 2 places apart.
template <int kCount>
MOTE_INLINE void transform_vectors(F32x16* x) {
  if constexpr (kCount > 1) {
    constexpr int kHalf = kCount / 2;
    transform_vectors<kHalf>(x);
    transform_vectors<kHalf>(x + kHalf);
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      const F32x16 a = x[i], b = x[i + kHalf];
      x[i] = a + b;
      x[i + kHalf] = a - b;
    }
  }
}

// The sums and differences of columns 1, 2 .. 8 kCount apart. before: (vector, its index) -> vector, last likewise
template <int kCount, typename Before, typename Last>
MOTE_INLINE void transform_near(const float* x, int64_t size, float* y, const Before& before, const Last& last) {
  for (int64_t i = 0; i < size / 16; i += kCount) {
    F32x16 v[kCount];
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) v[j] = transform_lanes(before(load_f32(x + 16 * (i + j)), i + j));
    transform_vectors<kCount>(v);
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) store_f32(y + 16 * (i + j), last(v[j], i + j));
  }
}

// Those of columns `apart`, 2 `apart` .. kCount / 2 `apart` apart.
template <int kCount, typename Last>
MOTE_INLINE void transform_far(float* x, int64_t size, int64_t apart, const Last& last) {
  for (int64_t block = 0; block < size; block += kCount * apart) {
    for (int64_t k = block; k < block + apart; k += 16) {
      F32x16 v[kCount];
#pragma GCC unroll 8
      for (int j = 0; j < kCount; ++j) v[j] = load_f32(x + k + j * apart);
      transform_vectors<kCount>(v);
#pragma GCC unroll 8
      for (int j = 0; j < kCount; ++j) store_f32(x + k + j * apart, last(v[j], (k + j * apart) / 16));
    }
  }
}

// The Walsh-Hadamard transform of `size` floats, a power of two and at least 16, divided by sqrt(size): sums and
// differences of columns 1, 2, 4 .. apart, in this order however many are taken together. before and after: (vector,
// its index) -> vector
template <typename Before, typename After>
void transform(const float* x, int64_t size, float* y, const Before& before, const After& after) {
  const int log2 = std::countr_zero(static_cast<uint64_t>(size));
  const float root = log2 % 2 == 0 ? 1.0f : 0x1.6a09e6p-1f;  // of an odd power, sqrt(1 / 2)
  const F32x16 scale = splat(std::bit_cast<float>((127 - log2 / 2) << 23) * root);
  const auto same = [](F32x16 v, int64_t) MOTE_INLINE_LAMBDA { return v; };
  const auto last = [&](F32x16 v, int64_t i) MOTE_INLINE_LAMBDA { return after(v * scale, i); };
  if (size == 16) return transform_near<1>(x, size, y, before, last);
  if (size == 32) return transform_near<2>(x, size, y, before, last);
  if (size == 64) return transform_near<4>(x, size, y, before, last);
  transform_near<4>(x, size, y, before, same);
  int64_t apart = 64;
  while (size / apart > kMostTogether) {
    transform_far<kMostTogether>(y, size, apart, same);
    apart *= kMostTogether;
  }
  if (size == 2 * apart) return transform_far<2>(y, size, apart, last);
  if (size == 4 * apart) return transform_far<4>(y, size, apart, last);
  transform_far<kMostTogether>(y, size, apart, last);
}

// y may be x. width: a multiple of 16
inline void rotate_row(const float* x, int64_t width, float* y) {
  const auto size = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(width)));
  const auto flip = [](F32x16 v, int64_t i) MOTE_INLINE_LAMBDA { return flip_signs(v, i); };
  const auto same = [](F32x16 v, int64_t) MOTE_INLINE_LAMBDA { return v; };
  if (y != x) std::memcpy(y + size, x + size, static_cast<size_t>(width - size) * sizeof(float));
  transform(x, size, y, flip, same);
  if (size != width) transform(y + width - size, size, y + width - size, flip, same);
}

inline void rotate_row_back(float* x, int64_t width) {
  const auto size = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(width)));
  const auto flip = [](F32x16 v, int64_t i) MOTE_INLINE_LAMBDA { return flip_signs(v, i); };
  const auto same = [](F32x16 v, int64_t) MOTE_INLINE_LAMBDA { return v; };
  if (size != width) transform(x + width - size, size, x + width - size, same, flip);
  transform(x, size, x, same, flip);
}

}  // namespace MOTE_ISA
}  // namespace mote
