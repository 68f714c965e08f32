#include "kernels/attention/cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/float_bits.h"
#include "kernels/math.h"

namespace mote {

namespace {

// Where the scales of an int8 or int4 row begin.
int64_t scales_offset(KvType type, int32_t width) {
  return kv_row_bytes(type, width) - (int64_t{width} + kKvGroup - 1) / kKvGroup * 4;
}

float group_scale(const float* x, int32_t count, float largest_code) {
  float magnitude = 0;
  for (int32_t i = 0; i < count; ++i) magnitude = std::fabs(x[i]) > magnitude ? std::fabs(x[i]) : magnitude;
  return magnitude / largest_code;
}

int code_of(float x, float scale, float largest_code) {
  float code = scale > 0 ? math::round_even(x / scale) : 0.0f;
  code = code > -largest_code ? code : -largest_code;  // NaN becomes the smallest code
  return static_cast<int>(code < largest_code ? code : largest_code);
}

void write_codes(KvType type, const float* from, int32_t width, uint8_t* row) {
  const float largest_code = type == KvType::kInt8 ? 127.0f : 7.0f;
  const int64_t scales = scales_offset(type, width);
  std::memset(row, 0, static_cast<size_t>(scales));
  for (int32_t begin = 0; begin < width; begin += kKvGroup) {
    const int32_t count = std::min(kKvGroup, width - begin);
    const float scale = group_scale(from + begin, count, largest_code);
    std::memcpy(row + scales + begin / kKvGroup * 4, &scale, sizeof(scale));
    for (int32_t i = begin; i < begin + count; ++i) {
      const int code = code_of(from[i], scale, largest_code);
      if (type == KvType::kInt8) {
        row[i] = static_cast<uint8_t>(code);
      } else {
        row[i / 2] = static_cast<uint8_t>(row[i / 2] | ((code + 8) << (i % 2 * 4)));
      }
    }
  }
}

void read_codes(KvType type, const uint8_t* row, int32_t width, float* to) {
  const int64_t scales = scales_offset(type, width);
  for (int32_t begin = 0; begin < width; begin += kKvGroup) {
    const int32_t end = std::min(begin + kKvGroup, width);
    float scale = 0;
    std::memcpy(&scale, row + scales + begin / kKvGroup * 4, sizeof(scale));
    if (type == KvType::kInt8) {
      for (int32_t i = begin; i < end; ++i) to[i] = scale * static_cast<float>(static_cast<int8_t>(row[i]));
    } else {
      for (int32_t i = begin; i < end; ++i) to[i] = scale * static_cast<float>(((row[i / 2] >> (i % 2 * 4)) & 15) - 8);
    }
  }
}

}  // namespace

void write_kv_row(KvType type, const float* from, int32_t width, void* row) {
  if (type == KvType::kFloat32) {
    std::memcpy(row, from, static_cast<size_t>(width) * sizeof(float));
  } else if (type == KvType::kFloat16) {
    uint16_t* halves = static_cast<uint16_t*>(row);
    for (int32_t i = 0; i < width; ++i) halves[i] = float32_to_float16(from[i]);
  } else {
    write_codes(type, from, width, static_cast<uint8_t*>(row));
  }
}

const float* read_kv_row(KvType type, const void* row, int32_t width, float* buffer) {
  if (type == KvType::kFloat32) return static_cast<const float*>(row);
  if (type == KvType::kFloat16) {
    to_float32(row, DType::kFloat16, width, buffer);
  } else {
    read_codes(type, static_cast<const uint8_t*>(row), width, buffer);
  }
  return buffer;
}

}  // namespace mote
