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
