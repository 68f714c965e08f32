// Conversions between float32 and the bits of float16 and bfloat16. Rounding is to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/tensor.h"

namespace mote {

inline float float16_to_float32(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu;
  // The exponent is rebased by a product, which also turns denormals into normal numbers.
  uint32_t result = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  result |= magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(result | ((bits & 0x8000u) << 16));
}

inline uint16_t float32_to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {  // denormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float bfloat16_to_float32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t float32_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// An element of float32, float16 or bfloat16.
inline float float_at(const void* from, DType dtype, int64_t index) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  if (dtype == DType::kFloat16) return float16_to_float32(halves[index]);
  if (dtype == DType::kBFloat16) return bfloat16_to_float32(halves[index]);
  return static_cast<const float*>(from)[index];
}

// n contiguous elements of float32, float16 or bfloat16 as float32.
inline void to_float32(const void* from, DType dtype, int64_t n, float* to) {
  const uint16_t* halves = static_cast<const uint16_t*>(from);
  if (dtype == DType::kFloat16) {
    for (int64_t i = 0; i < n; ++i) to[i] = float16_to_float32(halves[i]);
  } else if (dtype == DType::kBFloat16) {
    for (int64_t i = 0; i < n; ++i) to[i] = bfloat16_to_float32(halves[i]);
  } else {
    const float* floats = static_cast<const float*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = floats[i];
  }
}

}  // namespace mote
