// Blocks of keys as blocks of values, where the values of a cache are the first elements of its keys: the same numbers
// and scales, slots and elements exchanged (kernels/state.h). Only for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

// Four words of 32 bits, or eight of 16: what is moved here are bits.
#if defined(__AVX2__)
struct Words4 {
  __m128i v;
};
MOTE_INLINE Words4 load_words(const void* from) { return {_mm_loadu_si128(static_cast<const __m128i*>(from))}; }
MOTE_INLINE void store_words(void* to, Words4 x) { _mm_storeu_si128(static_cast<__m128i*>(to), x.v); }
// a0 b0 a1 b1 and a2 b2 a3 b3, of words of 32 bits and, for zip16, the same of 16.
MOTE_INLINE Words4 zip_low(Words4 a, Words4 b) { return {_mm_unpacklo_epi32(a.v, b.v)}; }
MOTE_INLINE Words4 zip_high(Words4 a, Words4 b) { return {_mm_unpackhi_epi32(a.v, b.v)}; }
MOTE_INLINE Words4 zip16_low(Words4 a, Words4 b) { return {_mm_unpacklo_epi16(a.v, b.v)}; }
MOTE_INLINE Words4 zip16_high(Words4 a, Words4 b) { return {_mm_unpackhi_epi16(a.v, b.v)}; }
#elif defined(__aarch64__)
struct Words4 {
  uint32x4_t v;
};
MOTE_INLINE Words4 load_words(const void* from) {
  return {vreinterpretq_u32_u8(vld1q_u8(static_cast<const uint8_t*>(from)))};
}
MOTE_INLINE void store_words(void* to, Words4 x) { vst1q_u8(static_cast<uint8_t*>(to), vreinterpretq_u8_u32(x.v)); }
MOTE_INLINE Words4 zip_low(Words4 a, Words4 b) { return {vzip1q_u32(a.v, b.v)}; }
MOTE_INLINE Words4 zip_high(Words4 a, Words4 b) { return {vzip2q_u32(a.v, b.v)}; }
MOTE_INLINE Words4 zip16_low(Words4 a, Words4 b) {
  return {vreinterpretq_u32_u16(vzip1q_u16(vreinterpretq_u16_u32(a.v), vreinterpretq_u16_u32(b.v)))};
}
MOTE_INLINE Words4 zip16_high(Words4 a, Words4 b) {
  return {vreinterpretq_u32_u16(vzip2q_u16(vreinterpretq_u16_u32(a.v), vreinterpretq_u16_u32(b.v)))};
}
#else
struct Words4 {
  uint32_t v[4];
};
MOTE_INLINE Words4 load_words(const void* from) {
  Words4 x;
  std::memcpy(x.v, from, sizeof(x.v));
  return x;
}
MOTE_INLINE void store_words(void* to, Words4 x) { std::memcpy(to, x.v, sizeof(x.v)); }
MOTE_INLINE Words4 zip_low(Words4 a, Words4 b) { return {{a.v[0], b.v[0], a.v[1], b.v[1]}}; }
MOTE_INLINE Words4 zip_high(Words4 a, Words4 b) { return {{a.v[2], b.v[2], a.v[3], b.v[3]}}; }
MOTE_INLINE Words4 zip16(uint32_t a0, uint32_t b0, uint32_t a1, uint32_t b1) {
  const auto both = [](uint32_t low, uint32_t high) { return (low & 0xFFFF) | high << 16; };
  return {{both(a0, b0), both(a0 >> 16, b0 >> 16), both(a1, b1), both(a1 >> 16, b1 >> 16)}};
}
MOTE_INLINE Words4 zip16_low(Words4 a, Words4 b) { return zip16(a.v[0], b.v[0], a.v[1], b.v[1]); }
MOTE_INLINE Words4 zip16_high(Words4 a, Words4 b) { return zip16(a.v[2], b.v[2], a.v[3], b.v[3]); }
#endif

// Writes column i of the words of four rows to `to` + i * stride.
MOTE_INLINE void store_columns(Words4 a, Words4 b, Words4 c, Words4 d, std::byte* to, int64_t stride) {
  const Words4 even = zip_low(a, c), odd = zip_low(b, d), even_high = zip_high(a, c), odd_high = zip_high(b, d);
  store_words(to, zip_low(even, odd));
  store_words(to + stride, zip_high(even, odd));
  store_words(to + 2 * stride, zip_low(even_high, odd_high));
  store_words(to + 3 * stride, zip_high(even_high, odd_high));
}

// [width][16 slots] of 4 bytes to [16 slots][width]; width is a multiple of 16.
MOTE_INLINE void transpose_floats(const std::byte* keys, int64_t width, std::byte* to) {
  constexpr int64_t kLine = 4 * kKvBlockSlots;
  for (int64_t d = 0; d < width; d += 4, keys += 4 * kLine, to += 16) {
    for (int64_t s = 0; s < kKvBlockSlots; s += 4) {
      const std::byte* at = keys + 4 * s;
      store_columns(load_words(at), load_words(at + kLine), load_words(at + 2 * kLine), load_words(at + 3 * kLine),
                    to + s * width * 4, width * 4);
    }
  }
}

// The same of 2 bytes.
MOTE_INLINE void transpose_halves(const std::byte* keys, int64_t width, std::byte* to) {
  constexpr int64_t kLine = 2 * kKvBlockSlots;
  for (int64_t d = 0; d < width; d += 8, keys += 8 * kLine, to += 16) {
    for (int64_t s = 0; s < kKvBlockSlots; s += 8) {
      Words4 low[4], high[4];  // of two elements, four slots each
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Words4 first = load_words(keys + 2 * i * kLine + 2 * s),
                     second = load_words(keys + (2 * i + 1) * kLine + 2 * s);
        low[i] = zip16_low(first, second);
        high[i] = zip16_high(first, second);
      }
      store_columns(low[0], low[1], low[2], low[3], to + s * width * 2, width * 2);
      store_columns(high[0], high[1], high[2], high[3], to + (s + 4) * width * 2, width * 2);
    }
  }
}

// Exchanges elements and slots of two slots with two elements each, of a byte.
MOTE_INLINE uint32_t exchange_bytes(uint32_t x) { return (x & 0xFF0000FF) | (x & 0xFF00) << 8 | (x & 0xFF0000) >> 8; }

// The same of four slots with four elements each, of a nibble. In 16 bits of one slot lie elements 0, 2, 1, 3, as in
// those of one element slots 0, 2, 1, 3: a transpose of 4 x 4 nibbles, with the middle two of both kinds exchanged.
MOTE_INLINE uint64_t exchange_nibbles(uint64_t x) {
  const auto swap = [&](int shift, uint64_t mask) MOTE_INLINE_LAMBDA {
    const uint64_t differs = (x ^ (x >> shift)) & mask;
    x ^= differs | differs << shift;
  };
  swap(12, 0x0000F0F00000F0F0);  // within blocks of 2 x 2
  swap(24, 0x00000000FF00FF00);  // and of the blocks
  swap(16, 0x00000000FFFF0000);  // the middle two of four times 16 bits
  swap(4, 0x00F000F000F000F0);   // and of four nibbles each
  return x;
}

// `columns` elements (16 or 32), two or four of them in a line of 32 bytes, as a group of a block of values.
struct Int8Transposer {
  static constexpr int64_t kTogether = 2;
  MOTE_INLINE static void run(const std::byte* lines, int64_t columns, std::byte* to) {
    uint32_t words[kKvGroup / 2 * 8];
    const int64_t rows = columns / 2;
    std::memcpy(words, lines, static_cast<size_t>(rows) * 32);
    for (int64_t i = 0; i < rows * 8; ++i) words[i] = exchange_bytes(words[i]);
    for (int64_t row = 0; row < rows; row += 4) {
      for (int64_t pair = 0; pair < 8; pair += 4) {
        const uint32_t* at = words + row * 8 + pair;
        store_columns(load_words(at), load_words(at + 8), load_words(at + 16), load_words(at + 24),
                      to + pair * columns * 2 + row * 4, columns * 2);
      }
    }
  }
};
struct Int4Transposer {
  static constexpr int64_t kTogether = 4;
  MOTE_INLINE static void run(const std::byte* lines, int64_t columns, std::byte* to) {
    uint64_t words[kKvGroup / 4 * 4];
    const int64_t rows = columns / 4;
    std::memcpy(words, lines, static_cast<size_t>(rows) * 32);
    for (int64_t i = 0; i < rows * 4; ++i) words[i] = exchange_nibbles(words[i]);
    for (int64_t quad = 0; quad < 4; ++quad) {
      for (int64_t row = 0; row < rows; ++row) std::memcpy(to + (quad * rows + row) * 8, words + row * 4 + quad, 8);
    }
  }
};

// Elements [first, first + columns) of a block of keys as a group of a block of values, scales behind the codes.
template <typename Transposer>
MOTE_INLINE void transpose_group(const KvHead& head, const std::byte* keys, int64_t first, int64_t columns,
                                 std::byte* to) {
  constexpr int64_t kTogether = Transposer::kTogether;
  const int64_t lines = (head.head_dim + kTogether - 1) / kTogether;
  Transposer::run(keys + first / kTogether * 32, columns, to);
  std::memcpy(to + columns * 32 / kTogether, keys + lines * 32 + first / kKvGroup * 64, 64);
}

}  // namespace MOTE_ISA
}  // namespace mote
