// Weighted sums of values that are the first elements of keys, 16 queries a vector: elements of keys lie slot by slot
// as they are multiplied, so nothing but weights and sums is transposed. Only for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/tiles.h"
#include "kernels/ops/attention/transpose.h"

namespace mote {
inline namespace MOTE_ISA {

// Elements whose sums the registers hold; divides 16.
#if defined(__AVX512F__)
inline constexpr int kElementSums = 16;
#else
inline constexpr int kElementSums = 4;
#endif

// Rows [first, first + 16) of a tile, with zeros behind its last.
struct RowLanes {
  const float* weights;       // [kSplitLanes][16]
  uint32_t see[kSplitLanes];  // bit r: row r sees the slot; says nothing of full blocks

  RowLanes(const SplitBlocks& blocks, const QueryTile& tile, int first) {
    const int rows = tile.rows - first < 16 ? tile.rows - first : 16;
    float* to = reinterpret_cast<float*>(tile.wide);
    weights = to;
    for (int b = 0; b < blocks.count; ++b, to += 256) {
      const float* from = tile.scores + first * kSplitLanes + 16 * b;
      if (!tile.full[b]) find_rows(tile, first, rows, b);
      if (rows == 16) {
        transpose_16(from, kSplitLanes, to, 16);
        continue;
      }
      float padded[256] = {};
      for (int r = 0; r < rows; ++r) store_f32(padded + 16 * r, load_f32(from + r * kSplitLanes));
      transpose_16(padded, 16, to, 16);
    }
  }

 private:
  void find_rows(const QueryTile& tile, int first, int rows, int block) {
    for (int slot = 0; slot < kKvBlockSlots; ++slot) {
      uint32_t& rows_of = see[kKvBlockSlots * block + slot] = 0;
      for (int r = 0; r < rows; ++r) rows_of |= (tile.visible[(first + r) * kSplitBlocks + block] >> slot & 1) << r;
      if (rows_of == (1u << rows) - 1) rows_of = kAllLanes;
    }
  }
};

// sums[i] += weights of a slot * element i of its key, for 16 slots; rows: who sees each, nullptr: all
template <int kCount>
MOTE_INLINE void add_slots(const float* elements, const float* weights, const uint32_t* rows, F32x16 (&sums)[kCount]) {
  for (int slot = 0; slot < kKvBlockSlots; ++slot) {
    if (rows != nullptr && rows[slot] == 0) continue;
    const bool by_all = rows == nullptr || rows[slot] == kAllLanes;
    const F32x16 weight = load_f32(weights + 16 * slot);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      const F32x16 sum = fma(weight, splat(elements[kKvBlockSlots * i + slot]), sums[i]);
      sums[i] = by_all ? sum : select_lanes(rows[slot], sum, sums[i]);
    }
  }
}

// Elements [first, first + kElementSums) of all blocks. to: [kElementSums][16 rows]
template <typename Keys>
MOTE_INLINE void add_elements(const std::byte* const* blocks, int count, const QueryTile& tile, const RowLanes& rows,
                              int64_t first, float* to) {
  F32x16 sums[kElementSums];
#pragma GCC unroll 16
  for (int i = 0; i < kElementSums; ++i) sums[i] = splat(0.0f);
  for (int b = 0; b < count; ++b) {
    constexpr int64_t kBytes = kElementSums * kKvBlockSlots * Keys::kElementBytes;
    const std::byte* keys = blocks[b] + first * kKvBlockSlots * Keys::kElementBytes;
    alignas(64) float elements[kElementSums * kKvBlockSlots];
#pragma GCC unroll 16
    for (int i = 0; i < kElementSums; ++i) store_f32(elements + 16 * i, Keys::load(keys, i));
    for (int64_t at = 0; at < kBytes; at += 64) __builtin_prefetch(keys + kBytes + at);  // for the next call
    const float* weights = rows.weights + 256 * b;
    if (tile.full[b]) {
      add_slots(elements, weights, nullptr, sums);
    } else {
      add_slots(elements, weights, rows.see + kKvBlockSlots * b, sums);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kElementSums; ++i) store_f32(to + 16 * i, sums[i]);
}

template <typename Keys>
void add_values_in_keys(const KvHead& head, const SplitBlocks& blocks, const QueryTile& tile, float* sums) {
  const int64_t width = head.value_head_dim;  // a multiple of 16
  const std::byte* keys[kSplitBlocks];
  for (int b = 0; b < blocks.count; ++b) keys[b] = head.key_block(blocks.index[b]);
  for (int first = 0; first < tile.rows; first += 16) {
    const RowLanes lanes(blocks, tile, first);
    const int rows = tile.rows - first < 16 ? tile.rows - first : 16;
    for (int64_t element = 0; element < width; element += 16) {
      alignas(64) float by_element[256], by_row[256];
      for (int i = 0; i < 16; i += kElementSums)
        add_elements<Keys>(keys, blocks.count, tile, lanes, element + i, by_element + 16 * i);
      transpose_16(by_element, 16, by_row, 16);
      for (int r = 0; r < rows; ++r) store_f32(sums + (first + r) * width + element, load_f32(by_row + 16 * r));
    }
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
