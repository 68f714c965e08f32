// 16 floats and 16 integers, whatever the CPU's registers are. Include it only from *_simd.cpp, *_ISA.cpp and what
// those share: everything here lives in a namespace of the instructions that the including file is compiled for,
// because inline functions of one name that are compiled with different flags must never be one symbol.
//
// Every file that includes this gives the same bits: a sum has one order, a product and a sum that are fused are fused
// everywhere (fma), and nothing else is (-ffp-contract=off). Only the bits of a NaN differ: that it is one does not.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/simd/isa.h"

#if defined(MOTE_SIMD_GENERIC)
#include "kernels/simd/vectors_generic.h"
#elif defined(__AVX512F__) && defined(__AVX512BW__)
#include "kernels/simd/vectors_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/simd/vectors_avx2.h"
#elif defined(__aarch64__)
#include "kernels/simd/vectors_neon.h"
#else
#include "kernels/simd/vectors_generic.h"
#endif

namespace mote {
inline namespace MOTE_ISA {

// The first `count` of 16 floats, the others 0. 0 <= count <= 16.
MOTE_INLINE F32x16 load_part(const float* from, int64_t count) {
  float all[16] = {};
  std::memcpy(all, from, static_cast<size_t>(count) * sizeof(float));
  return load_f32(all);
}

MOTE_INLINE void store_part(float* to, F32x16 value, int64_t count) {
  float all[16];
  store_f32(all, value);
  std::memcpy(to, all, static_cast<size_t>(count) * sizeof(float));
}

// load_part and store_part for min(count, 16) elements, so that the last step of a loop is written as the others.
MOTE_INLINE F32x16 load_upto(const float* from, int64_t count) {
  return count >= 16 ? load_f32(from) : load_part(from, count);
}
MOTE_INLINE void store_upto(float* to, F32x16 value, int64_t count) {
  if (count >= 16) {
    store_f32(to, value);
  } else {
    store_part(to, value, count);
  }
}

// ((l0 + l8) + (l4 + l12)) + ..., the one order in which 16 lanes become one.
MOTE_INLINE float sum_lanes(F32x16 value) {
#if defined(__AVX512F__)
  const __m512 swapped = _mm512_shuffle_f32x4(value.v, value.v, 0x4E);
  const __m256 eight = _mm512_castps512_ps256(_mm512_add_ps(value.v, swapped));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
  float l[16];
  store_f32(l, value);
  float four[4];
  for (int i = 0; i < 4; ++i) four[i] = (l[i] + l[i + 8]) + (l[i + 4] + l[i + 12]);
  return (four[0] + four[2]) + (four[1] + four[3]);
#endif
}

// sum_lanes of four.
MOTE_INLINE void sum_lanes_of_4(const F32x16* values, float* sums) {
#if !defined(MOTE_SIMD_GENERIC) && (defined(__AVX512F__) || defined(__AVX2__))
  __m128 four[4];
  for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
    const __m512 swapped = _mm512_shuffle_f32x4(values[i].v, values[i].v, 0x4E);
    const __m256 eight = _mm512_castps512_ps256(_mm512_add_ps(values[i].v, swapped));
#else
    const __m256 eight = _mm256_add_ps(values[i].a, values[i].b);
#endif
    four[i] = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  }
  _MM_TRANSPOSE4_PS(four[0], four[1], four[2], four[3]);
  _mm_storeu_ps(sums, _mm_add_ps(_mm_add_ps(four[0], four[2]), _mm_add_ps(four[1], four[3])));
#elif !defined(MOTE_SIMD_GENERIC) && defined(__aarch64__)
  float32x2_t two[4];
  for (int i = 0; i < 4; ++i) {
    const float32x4_t* v = values[i].v;
    const float32x4_t four = vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3]));
    two[i] = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  }
  vst1_f32(sums, vpadd_f32(two[0], two[1]));
  vst1_f32(sums + 2, vpadd_f32(two[2], two[3]));
#else
  for (int i = 0; i < 4; ++i) sums[i] = sum_lanes(values[i]);
#endif
}

MOTE_INLINE int32_t sum_lanes(I32x16 value) {
#if defined(__AVX512F__)
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(value.v), _mm512_extracti64x4_epi64(value.v, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
#else
  int32_t l[16], sum = 0;
  store_i32(l, value);
  for (const int32_t lane : l) sum += lane;
  return sum;
#endif
}

// For lanes that are not NaN.
MOTE_INLINE float max_lanes(F32x16 value) {
#if defined(__AVX512F__)
  // The order of the loop below: the compiler's own reduction may choose differently between +0 and -0.
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(value.v), _mm512_extractf32x8_ps(value.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  float l[16];
  store_f32(l, value);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) l[i] = l[i] > l[i + half] ? l[i] : l[i + half];
  }
  return l[0];
#endif
}

}  // namespace MOTE_ISA
}  // namespace mote
