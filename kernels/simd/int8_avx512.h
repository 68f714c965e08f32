// kernels/simd/int8.h for AVX-512 VNNI.
#pragma once

#include <cstddef>

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

inline constexpr bool kCodesAreSigned = false;
inline constexpr bool kWideMatters = false;  // dot4 costs the same without kWide
inline constexpr int kPanelsAtOnce = 2,
                     kRunsAtOnce = 2;  // blocks of 16 rows x runs of 4 activations whose totals fit the registers

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

}  // namespace MOTE_ISA
}  // namespace mote
