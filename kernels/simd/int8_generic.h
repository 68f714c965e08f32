// kernels/simd/int8.h for a CPU of which nothing is known.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

#include "kernels/simd/simd.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

inline constexpr bool kCodesAreSigned = false;
inline constexpr bool kWideMatters = false;
inline constexpr int kPanelsAtOnce = 1, kTokensAtOnce = 4;

using UShort8 = uint16_t __attribute__((vector_size(16)));

struct Bytes64 {
  UShort8 v[4];
};

MOTE_INLINE Bytes64 zero_bytes() { return {}; }
// Keeps the compiler from knowing what x holds.
MOTE_INLINE void hide(Bytes64& x) { asm volatile("" : "+m"(x)); }
MOTE_INLINE Bytes64 load_bytes(const std::byte* from) {
  Bytes64 result;
  std::memcpy(result.v, from, sizeof(result.v));
  return result;
}
MOTE_INLINE void store_bytes(std::byte* to, const Bytes64& x) { std::memcpy(to, x.v, sizeof(x.v)); }
MOTE_INLINE Bytes64 operator|(const Bytes64& a, const Bytes64& b) {
  return {{a.v[0] | b.v[0], a.v[1] | b.v[1], a.v[2] | b.v[2], a.v[3] | b.v[3]}};
}
MOTE_INLINE Bytes64 subtract(const Bytes64& a, int) { return a; }
MOTE_INLINE Bytes64 as_bytes(const I32x16& x) { return std::bit_cast<Bytes64>(x); }
MOTE_INLINE Bytes64 multiply_pairs(const Bytes64& a, const Bytes64& b) {
  return {{a.v[0] * b.v[0], a.v[1] * b.v[1], a.v[2] * b.v[2], a.v[3] * b.v[3]}};
}
MOTE_INLINE Bytes64 add_pairs(const Bytes64& a, const Bytes64& b) {
  return {{a.v[0] + b.v[0], a.v[1] + b.v[1], a.v[2] + b.v[2], a.v[3] + b.v[3]}};
}
// table[index % 16] for each byte, where the table stands four times in 64 bytes.
MOTE_INLINE Bytes64 lookup_bytes(const Bytes64& table, const Bytes64& index) {
  uint8_t from[64], at[64], to[64];
  std::memcpy(from, table.v, sizeof(from));
  std::memcpy(at, index.v, sizeof(at));
  for (int i = 0; i < 64; ++i) to[i] = from[at[i] % 16];
  Bytes64 result;
  std::memcpy(result.v, to, sizeof(to));
  return result;
}

// The kIndex-th field of kWidth bits of each byte, moved to bit kTo.
template <int kWidth, int kIndex, int kTo>
MOTE_INLINE Bytes64 field(const Bytes64& x) {
  constexpr int kShift = kWidth * kIndex - kTo;
  constexpr auto kMask = static_cast<uint16_t>((((1 << kWidth) - 1) << kTo) * 0x0101);
  Bytes64 result;
  for (int i = 0; i < 4; ++i) {
    UShort8 v = x.v[i];
    if constexpr (kShift > 0) v = v >> kShift;
    if constexpr (kShift < 0) v = v << -kShift;
    result.v[i] = v & kMask;
  }
  return result;
}

// Adds the dot product of a row's 4 codes with the 4 signed bytes of `x` to each of 16 sums.
template <bool kWide>
MOTE_INLINE I32x16 dot4(const I32x16& sums, const Bytes64& codes, int32_t x) {
  const Int4 all = {x, x, x, x};
  const Short8 odd = std::bit_cast<Short8>(all) >> 8, even = (std::bit_cast<Short8>(all) << 8) >> 8;
  I32x16 result;
  for (int i = 0; i < 4; ++i) {
    const Short8 odd_codes = std::bit_cast<Short8>(codes.v[i] >> 8),
                 even_codes = std::bit_cast<Short8>(codes.v[i] & 255);
    store(result.v + 4 * i,
          load<Int4>(sums.v + 4 * i) + multiply_add_pairs(odd_codes, odd) + multiply_add_pairs(even_codes, even));
  }
  return result;
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
