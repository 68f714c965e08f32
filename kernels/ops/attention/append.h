// Writes keys and values into blocks of a cache. Only for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/tiles.h"

namespace mote {
inline namespace MOTE_ISA {

// The first 16 of `count` floats; 0 where there are fewer.
MOTE_INLINE F32x16 load_up_to(const float* from, int64_t count) {
  if (count >= 16) return load_f32(from);
  return count > 0 ? load_part(from, count) : splat(0.0f);
}

// The scale of 32 floats as state.h says.
MOTE_INLINE float scale_of(const F32x16& low, const F32x16& high, bool is_int8) {
  const F32x16 zero = splat(0.0f);
  if (is_int8) return max_lanes(max(magnitude(high), max(magnitude(low), zero))) / 127.0f;
  const float most = max_lanes(max(high, max(low, zero))), least = max_lanes(max(zero - high, max(zero - low, zero)));
  return most > least ? most / -8.0f : least / 8.0f;
}

// Codes of at most 32 floats, padded with 0; NaN becomes the smallest code. Returns the scale.
MOTE_INLINE float quantize_group(const float* from, int64_t count, bool is_int8, int8_t* codes) {
  const F32x16 low = load_up_to(from, count);
  const F32x16 high = load_up_to(from + 16, count - 16);
  const float scale = scale_of(low, high, is_int8);
  const F32x16 largest = splat(is_int8 ? 127.0f : 7.0f), smallest = splat(is_int8 ? -127.0f : -8.0f);
  const F32x16 divisor = splat(scale);
  if (scale != 0) {
    store_i8(codes, round_to_i32(min(max(low / divisor, smallest), largest)));
    store_i8(codes + 16, round_to_i32(min(max(high / divisor, smallest), largest)));
  } else {
    std::memset(codes, 0, 32);
  }
  return scale;
}

// put(i, x) writes element i of the slot.
template <typename Put>
MOTE_INLINE void put_floats(const float* from, int64_t count, const Put& put) {
  for (int64_t i = 0; i < count; ++i) put(i, from[i]);
}

template <typename Put>
MOTE_INLINE void put_halves(const float* from, int64_t count, const Put& put) {
  for (int64_t begin = 0; begin < count; begin += 16) {
    const int64_t part = count - begin < 16 ? count - begin : 16;
    uint16_t halves[16];
    store_f16(halves, load_up_to(from + begin, part));
    for (int64_t i = 0; i < part; ++i) put(begin + i, halves[i]);
  }
}

// Writes one nibble of a byte and keeps the other, which is of another element or slot.
MOTE_INLINE void put_nibble(uint8_t* at, bool high, int code) {
  const int kept = high ? *at & 15 : *at & 0xF0;
  *at = static_cast<uint8_t>(kept | (high ? (code + 8) << 4 : code + 8));
}

MOTE_INLINE void append_key_codes(const KvHead& head, std::byte* block, int64_t slot, const float* key) {
  const bool is_int8 = head.type == KvType::kInt8;
  const int64_t width = head.head_dim, step = is_int8 ? 2 : 4;
  const int64_t padded = (width + step - 1) / step * step;
  uint8_t* bytes = reinterpret_cast<uint8_t*>(block);
  float* scales = reinterpret_cast<float*>(block + padded / step * 32);
  for (int64_t begin = 0; begin < padded; begin += kKvGroup) {
    int8_t codes[kKvGroup];
    const int64_t count = width - begin < kKvGroup ? width - begin : kKvGroup;
    scales[begin / kKvGroup * 16 + slot] = quantize_group(key + begin, count, is_int8, codes);
    for (int64_t i = 0; i < kKvGroup && begin + i < padded; ++i) {
      uint8_t* at = bytes + (begin + i) / step * 32 + 2 * slot + i % 2;
      if (is_int8) {
        *at = static_cast<uint8_t>(codes[i]);
      } else {
        put_nibble(at, i % 4 >= 2, codes[i]);
      }
    }
  }
}

MOTE_INLINE void append_value_codes(const KvHead& head, std::byte* block, int64_t slot, const float* value) {
  const bool is_int8 = head.type == KvType::kInt8;
  const int64_t width = head.value_head_dim, padded = padded_width(width), step = is_int8 ? 2 : 4;
  uint8_t* bytes = reinterpret_cast<uint8_t*>(block);
  for (int64_t begin = 0; begin < padded; begin += kKvGroup) {
    int8_t codes[kKvGroup];
    const int64_t columns = padded - begin < kKvGroup ? padded - begin : kKvGroup;
    const int64_t count = width - begin < kKvGroup ? width - begin : kKvGroup;
    const float scale = quantize_group(value + begin, count, is_int8, codes);
    uint8_t* line = bytes + slot / step * columns * 2 + slot % 2;
    for (int64_t i = 0; i < columns; ++i) {
      if (is_int8) {
        line[2 * i] = static_cast<uint8_t>(codes[i]);
      } else {
        put_nibble(line + 2 * i, slot % 4 >= 2, codes[i]);
      }
    }
    bytes += columns * (is_int8 ? 16 : 8);
    reinterpret_cast<float*>(bytes)[slot] = scale;
    bytes += 64;
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
