// kernels/simd/int8.h for 64-bit Arm, with or without dot products.
#pragma once

#include <cstddef>

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

inline constexpr bool kCodesAreSigned = true;
inline constexpr bool kWideMatters = false;
inline constexpr int kPanelsAtOnce = 1, kTokensAtOnce = 4;

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
    constexpr bool kIsAlone = kTo == 0 && kWidth * (kIndex + 1) == 8;  // the shift leaves nothing else
    return vreinterpretq_s8_u8(kIsAlone ? v : vandq_u8(v, mask));
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

#if defined(__ARM_FEATURE_DOTPROD)
#define MOTE_HAS_DOT_LANES

// 4 signed bytes of each of up to 4 rows, of which dot4_lane takes those of one.
template <int kRows>
MOTE_INLINE int8x16_t load_lanes(const int8_t* from) {
  if constexpr (kRows == 4) return vld1q_s8(from);
  int8_t bytes[16] = {};
  std::memcpy(bytes, from, 4 * kRows);
  return vld1q_s8(bytes);
}
template <int kLane>
MOTE_INLINE I32x16 dot4_lane(const I32x16& sums, const Bytes64& codes, int8x16_t lanes) {
  return each_i32([&](int i) { return vdotq_laneq_s32(sums.v[i], codes.v[i], lanes, kLane); });
}
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define MOTE_HAS_OCTETS

// Of 16 rows or of some tokens, two each: 8 columns of one, then of the other.
inline constexpr int kOctetBytes = 128;  // of 16 rows

// Writes 16 rows x 8 columns in pairs of rows, given as two quads.
MOTE_INLINE void store_octet(std::byte* to, const Bytes64& first, const Bytes64& second) {
  int32_t* words = reinterpret_cast<int32_t*>(to);
  for (int i = 0; i < 4; ++i) {
    const int32x4_t a = vreinterpretq_s32_s8(first.v[i]), b = vreinterpretq_s32_s8(second.v[i]);
    vst1q_s32(words + 8 * i, vzip1q_s32(a, b));
    vst1q_s32(words + 8 * i + 4, vzip2q_s32(a, b));
  }
}

// Sums of 16 rows times kTokens tokens, of 2 x 2 in a register.
template <int kTokens>
class OctetSums {
 public:
  // octet: as store_octet writes it   quads: of the run's tokens, 4 columns of each, then the next 4
  MOTE_INLINE void add(const std::byte* octet, const int8_t* quads) {
    const int32x4_t a = load_tokens(quads), b = load_tokens(quads + 4 * kTokens);
    const int8x16_t pairs[2] = {vreinterpretq_s8_s32(vzip1q_s32(a, b)), vreinterpretq_s8_s32(vzip2q_s32(a, b))};
    for (int r = 0; r < 8; ++r) {
      const int8x16_t rows = vld1q_s8(reinterpret_cast<const int8_t*>(octet) + 16 * r);
      for (int t = 0; t < kPairs; ++t) sums_[t][r] = vmmlaq_s32(sums_[t][r], rows, pairs[t]);
    }
  }
  // Of 16 rows.
  MOTE_INLINE I32x16 of_token(int token) const {
    const int32x4_t* sums = sums_[token / 2];
    return each_i32([&](int i) {
      return token % 2 == 0 ? vuzp1q_s32(sums[2 * i], sums[2 * i + 1]) : vuzp2q_s32(sums[2 * i], sums[2 * i + 1]);
    });
  }

 private:
  static constexpr int kPairs = (kTokens + 1) / 2;

  MOTE_INLINE static int32x4_t load_tokens(const int8_t* quads) {
    int32_t words[4] = {};
    std::memcpy(words, quads, 4 * kTokens);
    return vld1q_s32(words);
  }

  int32x4_t sums_[kPairs][8] = {};
};
#endif

}  // namespace MOTE_ISA
}  // namespace mote
