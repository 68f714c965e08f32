// kernels/simd/vectors.h for 64-bit Arm: four registers each.
#pragma once

#include <arm_neon.h>

#include "kernels/simd/isa.h"

namespace mote {
inline namespace MOTE_ISA {

struct F32x16 {
  float32x4_t v[4];
};
struct I32x16 {
  int32x4_t v[4];
};

template <typename Function>
MOTE_INLINE F32x16 each_f32(const Function& function) {
  return {{function(0), function(1), function(2), function(3)}};
}
template <typename Function>
MOTE_INLINE I32x16 each_i32(const Function& function) {
  return {{function(0), function(1), function(2), function(3)}};
}

MOTE_INLINE F32x16 load_f32(const float* from) {
  return each_f32([=](int i) { return vld1q_f32(from + 4 * i); });
}
MOTE_INLINE void store_f32(float* to, F32x16 x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, x.v[i]);
}
MOTE_INLINE F32x16 splat(float x) {
  return each_f32([=](int) { return vdupq_n_f32(x); });
}
MOTE_INLINE F32x16 load_f16(const void* from) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  return each_f32([=](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves + 4 * i))); });
}
MOTE_INLINE void store_f16(void* to, F32x16 x) {
  uint16_t* halves = static_cast<uint16_t*>(to);
  for (int i = 0; i < 4; ++i) vst1_u16(halves + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.v[i])));
}
MOTE_INLINE F32x16 load_bf16(const void* from) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  return each_f32([=](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(halves + 4 * i), 16)); });
}
MOTE_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return each_f32([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
MOTE_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return each_f32([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
MOTE_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return each_f32([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
MOTE_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return each_f32([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
}
MOTE_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {  // a b + c
  return each_f32([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
}
MOTE_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) {  // c - a b
  return each_f32([&](int i) { return vfmsq_f32(c.v[i], a.v[i], b.v[i]); });
}
// p < q ? x : y
MOTE_INLINE F32x16 select_less(F32x16 p, F32x16 q, F32x16 x, F32x16 y) {
  return each_f32([&](int i) { return vbslq_f32(vcltq_f32(p.v[i], q.v[i]), x.v[i], y.v[i]); });
}
MOTE_INLINE F32x16 min(F32x16 a, F32x16 b) { return select_less(a, b, a, b); }  // a < b ? a : b, also for NaN
MOTE_INLINE F32x16 max(F32x16 a, F32x16 b) { return select_less(b, a, a, b); }  // a > b ? a : b

MOTE_INLINE I32x16 load_i32(const void* from) {
  const int32_t* words = static_cast<const int32_t*>(from);
  return each_i32([=](int i) { return vld1q_s32(words + 4 * i); });
}
MOTE_INLINE void store_i32(void* to, I32x16 x) {
  int32_t* words = static_cast<int32_t*>(to);
  for (int i = 0; i < 4; ++i) vst1q_s32(words + 4 * i, x.v[i]);
}
MOTE_INLINE I32x16 splat_i32(int32_t x) {
  return each_i32([=](int) { return vdupq_n_s32(x); });
}
MOTE_INLINE I32x16 load_i8(const void* from) {
  const int8x16_t bytes = vld1q_s8(static_cast<const int8_t*>(from));
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
  return {{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)}};
}
// Stores the low byte of each lane. Values must be in -128..127.
MOTE_INLINE void store_i8(void* to, I32x16 x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(x.v[0]), vmovn_s32(x.v[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(x.v[2]), vmovn_s32(x.v[3]));
  vst1q_s8(static_cast<int8_t*>(to), vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
MOTE_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return each_i32([&](int i) { return vaddq_s32(a.v[i], b.v[i]); });
}
MOTE_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return each_i32([&](int i) { return vsubq_s32(a.v[i], b.v[i]); });
}
MOTE_INLINE I32x16 operator*(I32x16 a, I32x16 b) {
  return each_i32([&](int i) { return vmulq_s32(a.v[i], b.v[i]); });
}
MOTE_INLINE I32x16 operator&(I32x16 a, I32x16 b) {
  return each_i32([&](int i) { return vandq_s32(a.v[i], b.v[i]); });
}
template <int kBits> MOTE_INLINE I32x16 shift_left(I32x16 a) {
  return each_i32([&](int i) { return vshlq_n_s32(a.v[i], kBits); });
}
template <int kBits> MOTE_INLINE I32x16 shift_right(I32x16 a) {
  if constexpr (kBits == 0) {
    return a;  // the instruction shifts by 1 at least
  } else {
    return each_i32([&](int i) { return vshrq_n_s32(a.v[i], kBits); });
  }
}
MOTE_INLINE F32x16 to_f32(I32x16 x) {
  return each_f32([&](int i) { return vcvtq_f32_s32(x.v[i]); });
}
// To the nearest, halves to even. Magnitudes must be at most 2^22.
MOTE_INLINE I32x16 round_to_i32(F32x16 x) {
  return each_i32([&](int i) { return vcvtnq_s32_f32(x.v[i]); });
}
// The Walsh-Hadamard transform of 16 lanes: sums and differences of lanes 1, 2, 4 and 8 apart, in this order.
MOTE_INLINE F32x16 transform_lanes(F32x16 x) {
  const uint32x4_t odd = {0, 0x80000000, 0, 0x80000000}, upper = {0, 0, 0x80000000, 0x80000000};
  const auto turn = [](float32x4_t own, float32x4_t other, uint32x4_t signs) {
    return vaddq_f32(other, vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(own), signs)));
  };
  const F32x16 pairs = each_f32([&](int i) { return turn(x.v[i], vrev64q_f32(x.v[i]), odd); });
  const F32x16 y = each_f32([&](int i) { return turn(pairs.v[i], vextq_f32(pairs.v[i], pairs.v[i], 2), upper); });
  const float32x4_t a = vaddq_f32(y.v[0], y.v[1]), b = vsubq_f32(y.v[0], y.v[1]);
  const float32x4_t c = vaddq_f32(y.v[2], y.v[3]), d = vsubq_f32(y.v[2], y.v[3]);
  return {{vaddq_f32(a, c), vaddq_f32(b, d), vsubq_f32(a, c), vsubq_f32(b, d)}};
}
MOTE_INLINE F32x16 bits_to_f32(I32x16 x) {
  return each_f32([&](int i) { return vreinterpretq_f32_s32(x.v[i]); });
}
MOTE_INLINE I32x16 bits_to_i32(F32x16 x) {
  return each_i32([&](int i) { return vreinterpretq_s32_f32(x.v[i]); });
}

}  // namespace MOTE_ISA
}  // namespace mote
