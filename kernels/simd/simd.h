// Vectors of 16 bytes, which every CPU has, and the one order in which floats are summed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mote {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));
using Short8 = int16_t __attribute__((vector_size(16)));

inline constexpr int kLanes = 16;

template <typename Vector>
inline Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <typename Vector>
inline void store(void* to, Vector vector) {
  std::memcpy(to, &vector, sizeof(vector));
}

inline Float4 broadcast(float value) { return Float4{value, value, value, value}; }

// 16 partial sums: element k of a row belongs to lane k % 16.
struct Lanes {
  Float4 part[4] = {};

  void multiply_add(const float* a, const float* b) {
    for (int i = 0; i < 4; ++i) part[i] += load<Float4>(a + 4 * i) * load<Float4>(b + 4 * i);
  }
  float sum() const {
    const Float4 four = (part[0] + part[2]) + (part[1] + part[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
};

// sums[m] = dot product of a and b[m], each of n floats. The order is the same for every Rows.
template <int Rows>
inline void dot_rows(const float* a, const float* const* b, int64_t n, float* sums) {
  Lanes lanes[Rows];
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int m = 0; m < Rows; ++m) lanes[m].multiply_add(a + k, b[m] + k);
  }
  if (k < n) {
    float tail[Rows + 1][kLanes] = {};
    const size_t bytes = static_cast<size_t>(n - k) * sizeof(float);
    std::memcpy(tail[Rows], a + k, bytes);
    for (int m = 0; m < Rows; ++m) {
      std::memcpy(tail[m], b[m] + k, bytes);
      lanes[m].multiply_add(tail[Rows], tail[m]);
    }
  }
  for (int m = 0; m < Rows; ++m) sums[m] = lanes[m].sum();
}

// Lane i: a[2i] * b[2i] + a[2i + 1] * b[2i + 1], exact.
inline Int4 multiply_add_pairs(Short8 a, Short8 b) {
#if defined(__SSE2__)
  return std::bit_cast<Int4>(_mm_madd_epi16(std::bit_cast<__m128i>(a), std::bit_cast<__m128i>(b)));
#else
  static_assert(std::endian::native == std::endian::little);
  const Int4 x = std::bit_cast<Int4>(a), y = std::bit_cast<Int4>(b);
  return ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16);
#endif
}

}  // namespace mote
