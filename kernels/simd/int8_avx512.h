// kernels/simd/int8.h for AVX-512, with or without VNNI.
#pragma once

#include <cstddef>

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

inline constexpr bool kCodesAreSigned = false;
#if defined(__AVX512VNNI__)
inline constexpr bool kWideMatters = false;
inline constexpr int kPanelsAtOnce = 2, kTokensAtOnce = 8;
#else
inline constexpr bool kWideMatters = true;
inline constexpr int kPanelsAtOnce = 1, kTokensAtOnce = 4;
#endif

struct Bytes64 {
  __m512i v;
};

MOTE_INLINE Bytes64 zero_bytes() { return {_mm512_setzero_si512()}; }
// Keeps the compiler from knowing what x holds, at no instruction.
MOTE_INLINE void hide(Bytes64& x) { asm volatile("" : "+v"(x.v)); }
MOTE_INLINE Bytes64 load_bytes(const std::byte* from) { return {_mm512_loadu_si512(from)}; }
MOTE_INLINE void store_bytes(std::byte* to, Bytes64 x) { _mm512_storeu_si512(to, x.v); }
MOTE_INLINE Bytes64 operator|(Bytes64 a, Bytes64 b) { return {_mm512_or_si512(a.v, b.v)}; }
MOTE_INLINE Bytes64 subtract(Bytes64 a, int b) {
  return {_mm512_sub_epi8(a.v, _mm512_set1_epi8(static_cast<char>(b)))};
}
MOTE_INLINE Bytes64 as_bytes(I32x16 x) { return {x.v}; }
MOTE_INLINE Bytes64 multiply_pairs(Bytes64 a, Bytes64 b) { return {_mm512_mullo_epi16(a.v, b.v)}; }
MOTE_INLINE Bytes64 add_pairs(Bytes64 a, Bytes64 b) { return {_mm512_add_epi16(a.v, b.v)}; }
// table[index % 16] for each byte, where the table stands four times in 64 bytes.
MOTE_INLINE Bytes64 lookup_bytes(Bytes64 table, Bytes64 index) { return {_mm512_shuffle_epi8(table.v, index.v)}; }

// The kIndex-th field of kWidth bits of each byte, moved to bit kTo.
template <int kWidth, int kIndex, int kTo>
MOTE_INLINE Bytes64 field(Bytes64 x) {
  constexpr int kShift = kWidth * kIndex - kTo;
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(((1 << kWidth) - 1) << kTo));
  if constexpr (kShift > 0) return {_mm512_and_si512(_mm512_srli_epi16(x.v, kShift), mask)};
  if constexpr (kShift < 0) return {_mm512_and_si512(_mm512_slli_epi16(x.v, -kShift), mask)};
  return {_mm512_and_si512(x.v, mask)};
}

#if defined(__AVX512VNNI__)

// Adds the dot product of a row's 4 codes with the 4 signed bytes of `x` to each of 16 sums. kWide: codes may exceed
// 127.
template <bool kWide>
MOTE_INLINE I32x16 dot4(I32x16 sums, Bytes64 codes, int32_t x) {
  return {_mm512_dpbusd_epi32(sums.v, codes.v, _mm512_set1_epi32(x))};
}

// The same with the 4 signed bytes at `x`, which the product broadcasts from memory. Compilers use a separate
// instruction for that, and the number of instructions limits the loop.
template <bool kWide>
MOTE_INLINE I32x16 dot4_at(I32x16 sums, Bytes64 codes, const int8_t* x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums.v) : "v"(codes.v), "m"(*reinterpret_cast<const int8_t (*)[4]>(x)));
  return sums;
}

#else

// Products of a row's 4 codes, below 128, with the 4 signed bytes of `x`, of which neighbours are added: 16 bits each.
#define MOTE_HAS_DOT_PAIRS
MOTE_INLINE Bytes64 dot_pairs(Bytes64 codes, int32_t x) {
  return {_mm512_maddubs_epi16(codes.v, _mm512_set1_epi32(x))};
}
// The same of signed codes with the 4 unsigned bytes of `x`.
MOTE_INLINE Bytes64 dot_pairs_unsigned(Bytes64 codes, int32_t x) {
  return {_mm512_maddubs_epi16(_mm512_set1_epi32(x), codes.v)};
}
// sums + the two 16-bit numbers of each row times its two of `factors`.
MOTE_INLINE I32x16 add_multiplied(I32x16 sums, Bytes64 pairs, Bytes64 factors) {
  return {_mm512_add_epi32(sums.v, _mm512_madd_epi16(pairs.v, factors.v))};
}
// sums + the two 16-bit numbers of each row.
MOTE_INLINE I32x16 add_widened(I32x16 sums, Bytes64 pairs) {
  return add_multiplied(sums, pairs, {_mm512_set1_epi16(1)});
}

MOTE_INLINE Bytes64 magnitudes(Bytes64 x) { return {_mm512_abs_epi8(x.v)}; }

// dot4 of signed codes with bytes of `x` that are at least -127. magnitudes: of the codes
#define MOTE_HAS_DOT4_SIGNED
MOTE_INLINE I32x16 dot4_signed(I32x16 sums, Bytes64 codes, Bytes64 magnitudes, int32_t x) {
  const __m512i all = _mm512_set1_epi32(x);
  const __m512i turned = _mm512_mask_sub_epi8(all, _mm512_movepi8_mask(codes.v), _mm512_setzero_si512(), all);
  return add_widened(sums, {_mm512_maddubs_epi16(magnitudes.v, turned)});
}

// Adds the dot product of a row's 4 codes with the 4 signed bytes of `x` to each of 16 sums. kWide: codes may exceed
// 127, whose sums of neighbouring products do not fit 16 bits: 2 * 127 * 128 < 2^15.
template <bool kWide>
MOTE_INLINE I32x16 dot4(I32x16 sums, Bytes64 codes, int32_t x) {
  if constexpr (!kWide) return add_widened(sums, dot_pairs(codes, x));
  const Bytes64 top = {_mm512_set1_epi8(static_cast<char>(0x80))};
  sums = add_widened(sums, dot_pairs({_mm512_and_si512(codes.v, top.v)}, x));
  return add_widened(sums, dot_pairs({_mm512_andnot_si512(top.v, codes.v)}, x));
}

// The same with the 4 signed bytes at `x`.
template <bool kWide>
MOTE_INLINE I32x16 dot4_at(I32x16 sums, Bytes64 codes, const int8_t* x) {
  int32_t quad;
  std::memcpy(&quad, x, sizeof(quad));
  return dot4<kWide>(sums, codes, quad);
}

#endif

}  // namespace MOTE_ISA
}  // namespace mote
