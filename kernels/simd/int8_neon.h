// kernels/simd/int8.h for 64-bit Arm, with or without dot products.
#pragma once

#include <cstddef>

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

inline constexpr bool kCodesAreSigned = true;
inline constexpr bool kWideMatters = false;  // dot4 costs the same without kWide
inline constexpr int kPanelsAtOnce = 1,
                     kRunsAtOnce = 1;  // blocks of 16 rows x runs of 4 activations whose totals fit the registers

struct Bytes64 {
  int8x16_t v[4];
};

template <typename Function>
MOTE_INLINE Bytes64 each_bytes(const Function& function) {
  return {{function(0), function(1), function(2), function(3)}};
}

// Keeps the compiler from knowing what x holds, at no instruction.
MOTE_INLINE void hide(Bytes64& x) { asm volatile("" : "+w"(x.v[0]), "+w"(x.v[1]), "+w"(x.v[2]), "+w"(x.v[3])); }
MOTE_INLINE Bytes64 zero_bytes() {
  return each_bytes([](int) { return vdupq_n_s8(0); });
}
MOTE_INLINE Bytes64 load_bytes(const std::byte* from) {
  return each_bytes([=](int i) { return vld1q_s8(reinterpret_cast<const int8_t*>(from) + 16 * i); });
}
MOTE_INLINE void store_bytes(std::byte* to, const Bytes64& x) {
  for (int i = 0; i < 4; ++i) vst1q_s8(reinterpret_cast<int8_t*>(to) + 16 * i, x.v[i]);
}
MOTE_INLINE Bytes64 operator|(const Bytes64& a, const Bytes64& b) {
  return each_bytes([&](int i) { return vorrq_s8(a.v[i], b.v[i]); });
}
MOTE_INLINE Bytes64 subtract(const Bytes64& a, int b) {
  const int8x16_t all = vdupq_n_s8(static_cast<int8_t>(b));
  return each_bytes([&](int i) { return vsubq_s8(a.v[i], all); });
}
MOTE_INLINE Bytes64 as_bytes(const I32x16& x) {
  return each_bytes([&](int i) { return vreinterpretq_s8_s32(x.v[i]); });
}
MOTE_INLINE Bytes64 multiply_bytes(const Bytes64& a, const Bytes64& b) {
  return each_bytes([&](int i) { return vmulq_s8(a.v[i], b.v[i]); });
}
// table[index % 16] for each byte, where the table stands four times in 64 bytes.
MOTE_INLINE Bytes64 lookup_bytes(const Bytes64& table, const Bytes64& index) {
  return each_bytes([&](int i) { return vqtbl1q_s8(table.v[i], vreinterpretq_u8_s8(index.v[i])); });
}

// The kIndex-th field of kWidth bits of each byte, moved to bit kTo.
template <int kWidth, int kIndex, int kTo>
MOTE_INLINE Bytes64 field(const Bytes64& x) {
  constexpr int kShift = kWidth * kIndex - kTo;
  const uint8x16_t mask = vdupq_n_u8(static_cast<uint8_t>(((1 << kWidth) - 1) << kTo));
  return each_bytes([&](int i) {
    uint8x16_t v = vreinterpretq_u8_s8(x.v[i]);
    if constexpr (kShift > 0) v = vshrq_n_u8(v, kShift);
    if constexpr (kShift < 0) v = vshlq_n_u8(v, -kShift);
    return vreinterpretq_s8_u8(vandq_u8(v, mask));
  });
}

// Adds the dot product of a row's 4 codes with the 4 signed bytes of `x` to each of 16 sums.
template <bool kWide>
MOTE_INLINE I32x16 dot4(const I32x16& sums, const Bytes64& codes, int32_t x) {
  const int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(x));
#if defined(__ARM_FEATURE_DOTPROD)
  return each_i32([&](int i) { return vdotq_s32(sums.v[i], codes.v[i], all); });
#else
  // One product of codes down to -128 fits 16 bits, the sum of two does not, so they are added in 32 bits.
  return each_i32([&](int i) {
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(codes.v[i]), vget_low_s8(all)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(codes.v[i], all));
    return vaddq_s32(sums.v[i], vpaddq_s32(low, high));
  });
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
