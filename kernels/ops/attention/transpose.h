// Transposes 16 rows of floats; and codes of a block of keys to those of a block of values, where the values of a cache
// are the first elements of its keys: the same numbers and scales, slots and elements exchanged (kernels/state.h). Only
// for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

// Four words of 32 bits: what is moved here are bits.
#if defined(__AVX2__)
struct Words4 {
  __m128i v;
};
MOTE_INLINE Words4 load_words(const void* from) { return {_mm_loadu_si128(static_cast<const __m128i*>(from))}; }
MOTE_INLINE void store_words(void* to, Words4 x) { _mm_storeu_si128(static_cast<__m128i*>(to), x.v); }
// a0 b0 a1 b1 and a2 b2 a3 b3.
MOTE_INLINE Words4 zip_low(Words4 a, Words4 b) { return {_mm_unpacklo_epi32(a.v, b.v)}; }
MOTE_INLINE Words4 zip_high(Words4 a, Words4 b) { return {_mm_unpackhi_epi32(a.v, b.v)}; }
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
#endif

// Writes column i of the words of four rows to `to` + i * stride.
MOTE_INLINE void store_columns(Words4 a, Words4 b, Words4 c, Words4 d, std::byte* to, int64_t stride) {
  const Words4 even = zip_low(a, c), odd = zip_low(b, d), even_high = zip_high(a, c), odd_high = zip_high(b, d);
  store_words(to, zip_low(even, odd));
  store_words(to + stride, zip_high(even, odd));
  store_words(to + 2 * stride, zip_low(even_high, odd_high));
  store_words(to + 3 * stride, zip_high(even_high, odd_high));
}

// Writes 16 rows of 16 floats, `from_stride` floats apart, as columns.
MOTE_INLINE void transpose_16(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  for (int64_t row = 0; row < 16; row += 4) {
    for (int64_t column = 0; column < 16; column += 4) {
      const float* at = from + row * from_stride + column;
      store_columns(load_words(at), load_words(at + from_stride), load_words(at + 2 * from_stride),
                    load_words(at + 3 * from_stride), reinterpret_cast<std::byte*>(to + column * to_stride + row),
                    to_stride * 4);
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

// Lines of 32 bytes as words of as many slots with as many elements each, which change places.
template <typename Word, typename Exchange>
MOTE_INLINE void load_exchanged(const std::byte* lines, int64_t count, Word* words, const Exchange& exchange) {
  std::memcpy(words, lines, static_cast<size_t>(count) * 32);
  for (int64_t i = 0; i < count * 32 / static_cast<int64_t>(sizeof(Word)); ++i) words[i] = exchange(words[i]);
}

// `columns` elements (16 or 32), two or four of them in a line of 32 bytes, as a group of a block of values.
struct Int8Transposer {
  static constexpr int64_t kTogether = 2;
  MOTE_INLINE static void run(const std::byte* lines, int64_t columns, std::byte* to) {
    uint32_t words[kKvGroup / 2 * 8];
    load_exchanged(lines, columns / 2, words, exchange_bytes);
    for (int64_t row = 0; row < columns / 2; row += 4) {
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
    load_exchanged(lines, rows, words, exchange_nibbles);
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
