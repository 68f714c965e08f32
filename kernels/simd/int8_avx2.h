// kernels/simd/int8.h for AVX2, with or without AVX-VNNI.
#pragma once

#include <cstddef>

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

inline constexpr bool kCodesAreSigned = false;
#if defined(__AVXVNNI__)
inline constexpr bool kWideMatters = false;
inline constexpr int kTokensAtOnce = 6;  // 12 registers of sums, of which 10 hide the latency of products
#else
inline constexpr bool kWideMatters = true;
inline constexpr int kTokensAtOnce = 4;
#endif
inline constexpr int kPanelsAtOnce = 1;

struct Bytes64 {
  __m256i a, b;
};

MOTE_INLINE Bytes64 zero_bytes() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
MOTE_INLINE Bytes64 load_bytes(const std::byte* from) {
  const __m256i* halves = reinterpret_cast<const __m256i*>(from);
  return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}
MOTE_INLINE void store_bytes(std::byte* to, Bytes64 x) {
  __m256i* halves = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(halves, x.a);
  _mm256_storeu_si256(halves + 1, x.b);
}
MOTE_INLINE Bytes64 operator|(Bytes64 x, Bytes64 y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
MOTE_INLINE Bytes64 subtract(Bytes64 x, int y) {
  const __m256i all = _mm256_set1_epi8(static_cast<char>(y));
  return {_mm256_sub_epi8(x.a, all), _mm256_sub_epi8(x.b, all)};
}
MOTE_INLINE Bytes64 as_bytes(I32x16 x) { return {x.a, x.b}; }
// Keeps the compiler from knowing what x holds, at no instruction.
MOTE_INLINE void hide(Bytes64& x) { asm volatile("" : "+x"(x.a), "+x"(x.b)); }
MOTE_INLINE Bytes64 multiply_pairs(Bytes64 x, Bytes64 y) {
  return {_mm256_mullo_epi16(x.a, y.a), _mm256_mullo_epi16(x.b, y.b)};
}
MOTE_INLINE Bytes64 add_pairs(Bytes64 x, Bytes64 y) { return {_mm256_add_epi16(x.a, y.a), _mm256_add_epi16(x.b, y.b)}; }
// table[index % 16] for each byte, where the table stands four times in 64 bytes.
MOTE_INLINE Bytes64 lookup_bytes(Bytes64 table, Bytes64 index) {
  return {_mm256_shuffle_epi8(table.a, index.a), _mm256_shuffle_epi8(table.b, index.b)};
}

// The kIndex-th field of kWidth bits of each byte, moved to bit kTo.
template <int kWidth, int kIndex, int kTo>
MOTE_INLINE Bytes64 field(Bytes64 x) {
  constexpr int kShift = kWidth * kIndex - kTo;
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(((1 << kWidth) - 1) << kTo));
  const auto half = [&](__m256i v) {
    if constexpr (kShift > 0) v = _mm256_srli_epi16(v, kShift);
    if constexpr (kShift < 0) v = _mm256_slli_epi16(v, -kShift);
    return _mm256_and_si256(v, mask);
  };
  return {half(x.a), half(x.b)};
}

#if !defined(__AVXVNNI__)
#define MOTE_HAS_DOT4_SIGNED
// Sums of neighbouring products fit 16 bits while codes stay below 128: 2 * 127 * 128 < 2^15.
template <bool kWide>
MOTE_INLINE __m256i dot4_half(__m256i sums, __m256i codes, __m256i x) {
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kWide) {
    const __m256i top = _mm256_set1_epi8(static_cast<char>(0x80));
    const __m256i high = _mm256_maddubs_epi16(_mm256_and_si256(codes, top), x);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(high, ones));
    codes = _mm256_andnot_si256(top, codes);
  }
  return _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x), ones));
}

// Products of a row's 4 codes, below 128, with the 4 signed bytes of `x`, of which neighbours are added: 16 bits each.
#define MOTE_HAS_DOT_PAIRS
MOTE_INLINE Bytes64 dot_pairs(Bytes64 codes, int32_t x) {
  const __m256i all = _mm256_set1_epi32(x);
  return {_mm256_maddubs_epi16(codes.a, all), _mm256_maddubs_epi16(codes.b, all)};
}
// The same of signed codes with the 4 unsigned bytes of `x`.
MOTE_INLINE Bytes64 dot_pairs_unsigned(Bytes64 codes, int32_t x) {
  const __m256i all = _mm256_set1_epi32(x);
  return {_mm256_maddubs_epi16(all, codes.a), _mm256_maddubs_epi16(all, codes.b)};
}
// sums + the two 16-bit numbers of each row times its two of `factors`.
MOTE_INLINE I32x16 add_multiplied(I32x16 sums, Bytes64 pairs, Bytes64 factors) {
  return {_mm256_add_epi32(sums.a, _mm256_madd_epi16(pairs.a, factors.a)),
          _mm256_add_epi32(sums.b, _mm256_madd_epi16(pairs.b, factors.b))};
}
// sums + the two 16-bit numbers of each row.
MOTE_INLINE I32x16 add_widened(I32x16 sums, Bytes64 pairs) {
  const __m256i ones = _mm256_set1_epi16(1);
  return add_multiplied(sums, pairs, {ones, ones});
}

MOTE_INLINE Bytes64 magnitudes(Bytes64 x) { return {_mm256_abs_epi8(x.a), _mm256_abs_epi8(x.b)}; }

// dot4 of signed codes with bytes of `x` that are at least -127. magnitudes: of the codes
MOTE_INLINE I32x16 dot4_signed(I32x16 sums, Bytes64 codes, Bytes64 magnitudes, int32_t x) {
  const __m256i all = _mm256_set1_epi32(x), ones = _mm256_set1_epi16(1);
  const auto half = [&](__m256i sum, __m256i code, __m256i magnitude) MOTE_INLINE_LAMBDA {
    const __m256i products = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(all, code));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(products, ones));
  };
  return {half(sums.a, codes.a, magnitudes.a), half(sums.b, codes.b, magnitudes.b)};
}
#endif

// Adds the dot product of a row's 4 codes with the 4 signed bytes of `x` to each of 16 sums. kWide: codes may exceed
// 127.
template <bool kWide>
MOTE_INLINE I32x16 dot4(I32x16 sums, Bytes64 codes, int32_t x) {
  const __m256i all = _mm256_set1_epi32(x);
#if defined(__AVXVNNI__)
  return {_mm256_dpbusd_avx_epi32(sums.a, codes.a, all), _mm256_dpbusd_avx_epi32(sums.b, codes.b, all)};
#else
  return {dot4_half<kWide>(sums.a, codes.a, all), dot4_half<kWide>(sums.b, codes.b, all)};
#endif
}

// The same with the 4 signed bytes at `x`.
template <bool kWide>
MOTE_INLINE I32x16 dot4_at(const I32x16& sums, const Bytes64& codes, const int8_t* x) {
  int32_t quad;
  std::memcpy(&quad, x, sizeof(quad));
  return dot4<kWide>(sums, codes, quad);
}

}  // namespace MOTE_ISA
}  // namespace mote
