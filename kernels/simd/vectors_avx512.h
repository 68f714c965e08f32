// kernels/simd/vectors.h for AVX-512.
#pragma once

#include <immintrin.h>

#include "kernels/simd/isa.h"

namespace mote {
inline namespace MOTE_ISA {

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};

MOTE_INLINE F32x16 load_f32(const float* from) { return {_mm512_loadu_ps(from)}; }
MOTE_INLINE void store_f32(float* to, F32x16 x) { _mm512_storeu_ps(to, x.v); }
MOTE_INLINE F32x16 splat(float x) { return {_mm512_set1_ps(x)}; }
MOTE_INLINE F32x16 load_f16(const void* from) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)))};
}
MOTE_INLINE void store_f16(void* to, F32x16 x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
MOTE_INLINE F32x16 load_bf16(const void* from) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
MOTE_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
MOTE_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
MOTE_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
MOTE_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
MOTE_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }    // a b + c
MOTE_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }  // c - a b
MOTE_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }                     // a < b ? a : b
MOTE_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }                     // a > b ? a : b
// a < b ? x : y
MOTE_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 x, F32x16 y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v)};
}

MOTE_INLINE I32x16 load_i32(const void* from) { return {_mm512_loadu_si512(from)}; }
MOTE_INLINE void store_i32(void* to, I32x16 x) { _mm512_storeu_si512(to, x.v); }
MOTE_INLINE I32x16 splat_i32(int32_t x) { return {_mm512_set1_epi32(x)}; }
MOTE_INLINE I32x16 load_i8(const void* from) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)))};
}
// Stores the low byte of each lane. Values must be in -128..127.
MOTE_INLINE void store_i8(void* to, I32x16 x) {
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm512_cvtepi32_epi8(x.v));
}
MOTE_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
MOTE_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
MOTE_INLINE I32x16 operator*(I32x16 a, I32x16 b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
MOTE_INLINE I32x16 operator&(I32x16 a, I32x16 b) { return {_mm512_and_si512(a.v, b.v)}; }
template <int kBits> MOTE_INLINE I32x16 shift_left(I32x16 a) { return {_mm512_slli_epi32(a.v, kBits)}; }
template <int kBits> MOTE_INLINE I32x16 shift_right(I32x16 a) { return {_mm512_srai_epi32(a.v, kBits)}; }
MOTE_INLINE F32x16 to_f32(I32x16 x) { return {_mm512_cvtepi32_ps(x.v)}; }
// To the nearest, halves to even. Magnitudes must be at most 2^22.
MOTE_INLINE I32x16 round_to_i32(F32x16 x) { return {_mm512_cvtps_epi32(x.v)}; }
// from[index % 16] for 16 indices.
MOTE_INLINE F32x16 lookup(F32x16 from, I32x16 index) { return {_mm512_permutexvar_ps(index.v, from.v)}; }
// The Walsh-Hadamard transform of 16 lanes: sums and differences of lanes 1, 2, 4 and 8 apart, in this order.
MOTE_INLINE F32x16 transform_lanes(F32x16 x) {
  const auto turn = [](__m512 own, __m512 other, __mmask16 upper)
                        MOTE_INLINE_LAMBDA { return _mm512_mask_sub_ps(_mm512_add_ps(own, other), upper, other, own); };
  __m512 v = turn(x.v, _mm512_permute_ps(x.v, 0xB1), 0xAAAA);
  v = turn(v, _mm512_permute_ps(v, 0x4E), 0xCCCC);
  v = turn(v, _mm512_shuffle_f32x4(v, v, 0xB1), 0xF0F0);
  return {turn(v, _mm512_shuffle_f32x4(v, v, 0x4E), 0xFF00)};
}
MOTE_INLINE F32x16 bits_to_f32(I32x16 x) { return {_mm512_castsi512_ps(x.v)}; }
MOTE_INLINE I32x16 bits_to_i32(F32x16 x) { return {_mm512_castps_si512(x.v)}; }

}  // namespace MOTE_ISA
}  // namespace mote
