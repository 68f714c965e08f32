// kernels/simd/vectors.h for AVX2, FMA and F16C: two registers each.
#pragma once

#include <immintrin.h>

#include "kernels/simd/isa.h"

namespace mote {
inline namespace MOTE_ISA {

struct F32x16 {
  __m256 a, b;
};
struct I32x16 {
  __m256i a, b;
};

MOTE_INLINE F32x16 load_f32(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
MOTE_INLINE void store_f32(float* to, F32x16 x) {
  _mm256_storeu_ps(to, x.a);
  _mm256_storeu_ps(to + 8, x.b);
}
MOTE_INLINE F32x16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
MOTE_INLINE F32x16 load_f16(const void* from) {
  const __m128i* halves = static_cast<const __m128i*>(from);
  return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
}
MOTE_INLINE void store_f16(void* to, F32x16 x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  __m128i* halves = static_cast<__m128i*>(to);
  _mm_storeu_si128(halves, _mm256_cvtps_ph(x.a, kNearest));
  _mm_storeu_si128(halves + 1, _mm256_cvtps_ph(x.b, kNearest));
}
MOTE_INLINE F32x16 load_bf16(const void* from) {
  const __m128i* halves = static_cast<const __m128i*>(from);
  const auto wide = [](__m128i x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16)); };
  return {wide(_mm_loadu_si128(halves)), wide(_mm_loadu_si128(halves + 1))};
}
MOTE_INLINE F32x16 operator+(F32x16 x, F32x16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
MOTE_INLINE F32x16 operator-(F32x16 x, F32x16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
MOTE_INLINE F32x16 operator*(F32x16 x, F32x16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
MOTE_INLINE F32x16 operator/(F32x16 x, F32x16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
MOTE_INLINE F32x16 fma(F32x16 x, F32x16 y, F32x16 z) {  // x y + z
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
MOTE_INLINE F32x16 fnma(F32x16 x, F32x16 y, F32x16 z) {  // z - x y
  return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
MOTE_INLINE F32x16 min(F32x16 x, F32x16 y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}  // x < y ? x : y
MOTE_INLINE F32x16 max(F32x16 x, F32x16 y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}  // x > y ? x : y
// p < q ? x : y
MOTE_INLINE F32x16 select_less(F32x16 p, F32x16 q, F32x16 x, F32x16 y) {
  return {_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(p.a, q.a, _CMP_LT_OQ)),
          _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(p.b, q.b, _CMP_LT_OQ))};
}

MOTE_INLINE I32x16 load_i32(const void* from) {
  const __m256i* halves = static_cast<const __m256i*>(from);
  return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}
MOTE_INLINE void store_i32(void* to, I32x16 x) {
  __m256i* halves = static_cast<__m256i*>(to);
  _mm256_storeu_si256(halves, x.a);
  _mm256_storeu_si256(halves + 1, x.b);
}
MOTE_INLINE I32x16 splat_i32(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
MOTE_INLINE I32x16 load_i8(const void* from) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(from));
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))};
}
// Stores the low byte of each lane. Values must be in -128..127.
MOTE_INLINE void store_i8(void* to, I32x16 x) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(static_cast<__m128i*>(to), bytes);
}
MOTE_INLINE I32x16 operator+(I32x16 x, I32x16 y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
MOTE_INLINE I32x16 operator-(I32x16 x, I32x16 y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
MOTE_INLINE I32x16 operator*(I32x16 x, I32x16 y) {
  return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)};
}
MOTE_INLINE I32x16 operator&(I32x16 x, I32x16 y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
template <int kBits> MOTE_INLINE I32x16 shift_left(I32x16 x) {
  return {_mm256_slli_epi32(x.a, kBits), _mm256_slli_epi32(x.b, kBits)};
}
template <int kBits> MOTE_INLINE I32x16 shift_right(I32x16 x) {
  return {_mm256_srai_epi32(x.a, kBits), _mm256_srai_epi32(x.b, kBits)};
}
MOTE_INLINE F32x16 to_f32(I32x16 x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
// To the nearest, halves to even. Magnitudes must be at most 2^22.
MOTE_INLINE I32x16 round_to_i32(F32x16 x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
// The Walsh-Hadamard transform of 16 lanes: sums and differences of lanes 1, 2, 4 and 8 apart, in this order.
MOTE_INLINE F32x16 transform_lanes(F32x16 x) {
  const auto half = [](__m256 v) MOTE_INLINE_LAMBDA {
    const auto turn = [](__m256 own, __m256 other, __m256 upper)
                          MOTE_INLINE_LAMBDA { return _mm256_add_ps(other, _mm256_xor_ps(own, upper)); };
    v = turn(v, _mm256_permute_ps(v, 0xB1), _mm256_setr_ps(0, -0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f));
    v = turn(v, _mm256_permute_ps(v, 0x4E), _mm256_setr_ps(0, 0, -0.0f, -0.0f, 0, 0, -0.0f, -0.0f));
    return turn(v, _mm256_permute2f128_ps(v, v, 1), _mm256_setr_ps(0, 0, 0, 0, -0.0f, -0.0f, -0.0f, -0.0f));
  };
  const __m256 a = half(x.a), b = half(x.b);
  return {_mm256_add_ps(a, b), _mm256_sub_ps(a, b)};
}
MOTE_INLINE F32x16 bits_to_f32(I32x16 x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
MOTE_INLINE I32x16 bits_to_i32(F32x16 x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }

}  // namespace MOTE_ISA
}  // namespace mote
