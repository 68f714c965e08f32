// kernels/simd/vectors.h for a CPU of which nothing is known: loops that the compiler vectorises as it can. A fused
// product is a call of the C library where the CPU has no instruction for it: slow, but with the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/simd/fused.h"
#include "kernels/simd/isa.h"
#include "kernels/support/float_bits.h"

namespace mote {
inline namespace MOTE_ISA {

struct F32x16 {
  float v[16];
};
struct I32x16 {
  int32_t v[16];
};

template <typename Function>
MOTE_INLINE F32x16 each_f32(const Function& function) {
  F32x16 result;
  for (int i = 0; i < 16; ++i) result.v[i] = function(i);
  return result;
}
template <typename Function>
MOTE_INLINE I32x16 each_i32(const Function& function) {
  I32x16 result;
  for (int i = 0; i < 16; ++i) result.v[i] = function(i);
  return result;
}

MOTE_INLINE F32x16 load_f32(const float* from) {
  F32x16 result;
  std::memcpy(result.v, from, sizeof(result.v));
  return result;
}
MOTE_INLINE void store_f32(float* to, const F32x16& x) { std::memcpy(to, x.v, sizeof(x.v)); }
MOTE_INLINE F32x16 splat(float x) {
  return each_f32([=](int) { return x; });
}
MOTE_INLINE F32x16 load_f16(const void* from) {
  uint16_t halves[16];
  std::memcpy(halves, from, sizeof(halves));
  return each_f32([&](int i) { return float16_to_float32(halves[i]); });
}
MOTE_INLINE void store_f16(void* to, const F32x16& x) {
  uint16_t halves[16];
  for (int i = 0; i < 16; ++i) halves[i] = float32_to_float16(x.v[i]);
  std::memcpy(to, halves, sizeof(halves));
}
MOTE_INLINE F32x16 load_bf16(const void* from) {
  uint16_t halves[16];
  std::memcpy(halves, from, sizeof(halves));
  return each_f32([&](int i) { return bfloat16_to_float32(halves[i]); });
}
MOTE_INLINE F32x16 operator+(const F32x16& a, const F32x16& b) {
  return each_f32([&](int i) { return a.v[i] + b.v[i]; });
}
MOTE_INLINE F32x16 operator-(const F32x16& a, const F32x16& b) {
  return each_f32([&](int i) { return a.v[i] - b.v[i]; });
}
MOTE_INLINE F32x16 operator*(const F32x16& a, const F32x16& b) {
  return each_f32([&](int i) { return a.v[i] * b.v[i]; });
}
MOTE_INLINE F32x16 operator/(const F32x16& a, const F32x16& b) {
  return each_f32([&](int i) { return a.v[i] / b.v[i]; });
}
MOTE_INLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {  // a b + c
  return each_f32([&](int i) { return fused_multiply_add(a.v[i], b.v[i], c.v[i]); });
}
MOTE_INLINE F32x16 fnma(const F32x16& a, const F32x16& b, const F32x16& c) {  // c - a b
  return each_f32([&](int i) { return fused_multiply_add(-a.v[i], b.v[i], c.v[i]); });
}
MOTE_INLINE F32x16 min(const F32x16& a, const F32x16& b) {
  return each_f32([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
MOTE_INLINE F32x16 max(const F32x16& a, const F32x16& b) {
  return each_f32([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
// p < q ? x : y
MOTE_INLINE F32x16 select_less(const F32x16& p, const F32x16& q, const F32x16& x, const F32x16& y) {
  return each_f32([&](int i) { return p.v[i] < q.v[i] ? x.v[i] : y.v[i]; });
}

MOTE_INLINE I32x16 load_i32(const void* from) {
  I32x16 result;
  std::memcpy(result.v, from, sizeof(result.v));
  return result;
}
MOTE_INLINE void store_i32(void* to, const I32x16& x) { std::memcpy(to, x.v, sizeof(x.v)); }
MOTE_INLINE I32x16 splat_i32(int32_t x) {
  return each_i32([=](int) { return x; });
}
MOTE_INLINE I32x16 load_i8(const void* from) {
  const int8_t* bytes = static_cast<const int8_t*>(from);
  return each_i32([=](int i) { return int32_t{bytes[i]}; });
}
// Stores the low byte of each lane. Values must be in -128..127.
MOTE_INLINE void store_i8(void* to, const I32x16& x) {
  int8_t* bytes = static_cast<int8_t*>(to);
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<int8_t>(x.v[i]);
}
MOTE_INLINE I32x16 operator+(const I32x16& a, const I32x16& b) {  // wraps
  return each_i32(
      [&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) + static_cast<uint32_t>(b.v[i])); });
}
MOTE_INLINE I32x16 operator-(const I32x16& a, const I32x16& b) {
  return each_i32(
      [&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) - static_cast<uint32_t>(b.v[i])); });
}
MOTE_INLINE I32x16 operator*(const I32x16& a, const I32x16& b) {
  return each_i32(
      [&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) * static_cast<uint32_t>(b.v[i])); });
}
MOTE_INLINE I32x16 operator&(const I32x16& a, const I32x16& b) {
  return each_i32([&](int i) { return a.v[i] & b.v[i]; });
}
template <int kBits> MOTE_INLINE I32x16 shift_left(const I32x16& a) {
  return each_i32([&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << kBits); });
}
template <int kBits> MOTE_INLINE I32x16 shift_right(const I32x16& a) {
  return each_i32([&](int i) { return a.v[i] >> kBits; });
}
MOTE_INLINE F32x16 to_f32(const I32x16& x) {
  return each_f32([&](int i) { return static_cast<float>(x.v[i]); });
}
// To the nearest, halves to even. Magnitudes must be at most 2^22.
MOTE_INLINE I32x16 round_to_i32(const F32x16& x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return each_i32([&](int i) { return std::bit_cast<int32_t>(x.v[i] + kShift) - std::bit_cast<int32_t>(kShift); });
}
// The Walsh-Hadamard transform of 16 lanes: sums and differences of lanes 1, 2, 4 and 8 apart, in this order.
MOTE_INLINE F32x16 transform_lanes(F32x16 x) {
  for (int apart = 1; apart < 16; apart *= 2) {
    x = each_f32([&](int i) { return (i & apart) == 0 ? x.v[i] + x.v[i + apart] : x.v[i - apart] - x.v[i]; });
  }
  return x;
}
MOTE_INLINE F32x16 bits_to_f32(const I32x16& x) {
  return each_f32([&](int i) { return std::bit_cast<float>(x.v[i]); });
}
MOTE_INLINE I32x16 bits_to_i32(const F32x16& x) {
  return each_i32([&](int i) { return std::bit_cast<int32_t>(x.v[i]); });
}

}  // namespace MOTE_ISA
}  // namespace mote
