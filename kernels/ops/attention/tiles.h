// How many queries, blocks and columns a register tile holds; results do not depend on it. Only for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

#if defined(__AVX512F__)
inline constexpr int kTileSums = 24;  // vectors of sums that fit the registers
inline constexpr int kMostRows = 6;
#else
inline constexpr int kTileSums = 4;
inline constexpr int kMostRows = 4;
#endif

// So many queries share float16 elements that it pays to convert these once, to memory that the nearest cache holds.
inline constexpr int kManyRows = 16;          // of keys
inline constexpr int kManyRowsOfValues = 32;  // which are stored before they are multiplied, and not meanwhile

// How few queries, which take less time to multiply than the cache to read, read it: in several streams, what comes
// next fetched by software, or in the order of its addresses, which hardware fetches ahead. The faster one depends on
// the CPU.
enum class Reading { kStreams, kInOrder };

constexpr bool waits_for_memory(int rows) { return rows < kMostRows; }
constexpr bool fetches(Reading reading, int rows) { return waits_for_memory(rows) && reading == Reading::kStreams; }
constexpr bool reads_in_order(Reading reading, int rows) {
  return waits_for_memory(rows) && reading == Reading::kInOrder;
}

// In order, few queries spend as long with elements of less than 32 bits as they wait for them: meanwhile they fetch
// the next split into a cache that holds it, which the nearest does not. float32 is read as fast as hardware fetches
// it.
constexpr bool fetches_next(Reading reading, int rows, int element_bytes) {
  return reading == Reading::kInOrder && rows <= kFewRows && element_bytes < 4;
}
// Whether there are blocks to fetch, and if so block_of(index) of each; where the next split ends sooner, of this one.
template <typename Elements, Reading kReading, typename BlockOf>
MOTE_INLINE bool find_next(const KvHead& head, const SplitBlocks& blocks, int rows, const std::byte** next,
                           const BlockOf& block_of) {
  if (!fetches_next(kReading, rows, Elements::kElementBytes) || !head.has_block(blocks.after(0))) return false;
  for (int b = 0; b < blocks.count; ++b)
    next[b] = block_of(head.has_block(blocks.after(b)) ? blocks.after(b) : blocks.index[b]);
  return true;
}
MOTE_INLINE void fetch_far(const std::byte* line) { __builtin_prefetch(line, 0, 2); }

// Reads a byte of each line, in order, so that what jumps between them later finds them in a cache.
MOTE_INLINE void touch(const std::byte* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) (void)*reinterpret_cast<const volatile unsigned char*>(from + at);
}

// Sums that the registers hold, those of a row beside one another and rows `stride` floats apart.
template <int kRows, int kColumns>
MOTE_INLINE void load_sums(const float* from, int64_t stride, F32x16 (&sums)[kRows][kColumns]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) sums[r][c] = load_f32(from + r * stride + 16 * c);
  }
}
template <int kRows, int kColumns>
MOTE_INLINE void zero_sums(F32x16 (&sums)[kRows][kColumns]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) sums[r][c] = splat(0.0f);
  }
}
template <int kRows, int kColumns>
MOTE_INLINE void store_sums(const F32x16 (&sums)[kRows][kColumns], float* to, int64_t stride) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) store_f32(to + r * stride + 16 * c, sums[r][c]);
  }
}
// sums[r][c] += factors[r * stride] * x[c]
template <int kRows, int kColumns>
MOTE_INLINE void add_products(const float* factors, int64_t stride, const F32x16 (&x)[kColumns],
                              F32x16 (&sums)[kRows][kColumns]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const F32x16 factor = splat(factors[r * stride]);
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) sums[r][c] = fma(factor, x[c], sums[r][c]);
  }
}

template <int kValue>
struct Constant {};

// function(Constant<kCount>, first) for all of [first, end), kMost at a time and then fewer.
template <int kMost, typename Function>
MOTE_INLINE void for_tiles(int first, int end, const Function& function) {
  for (; first + kMost <= end; first += kMost) function(Constant<kMost>(), first);
  if constexpr (kMost > 1) for_tiles<(kMost > 4 ? 4 : kMost / 2)>(first, end, function);
}

// How many blocks or columns a register tile holds for `rows` queries, up to `most`.
constexpr int beside(int rows, int most) { return kTileSums / rows < most ? kTileSums / rows : most; }

MOTE_INLINE F32x16 magnitude(F32x16 x) { return max(x, splat(0.0f) - x); }

// Bit i of the mask ? x : y.
MOTE_INLINE F32x16 select_lanes(uint32_t mask, F32x16 x, F32x16 y) {
#if defined(__AVX512F__)
  return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), y.v, x.v)};
#else
  int32_t bits[16];
  for (int i = 0; i < 16; ++i) bits[i] = 1 << i;
  const F32x16 chosen = to_f32(load_i32(bits) & splat_i32(static_cast<int32_t>(mask)));
  return select_less(splat(0.0f), chosen, x, y);
#endif
}

inline constexpr uint32_t kAllLanes = 0xFFFF;

}  // namespace MOTE_ISA
}  // namespace mote
