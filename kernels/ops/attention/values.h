// Weighted sums of values. Only for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/pairs.h"
#include "kernels/ops/attention/tiles.h"
#include "kernels/ops/attention/transpose.h"

namespace mote {
inline namespace MOTE_ISA {

struct Float32Values {
  static constexpr int64_t kElementBytes = 4;
  MOTE_INLINE static F32x16 load(const std::byte* from) { return load_f32(reinterpret_cast<const float*>(from)); }
};
struct Float16Values {
  static constexpr int64_t kElementBytes = 2;
  MOTE_INLINE static F32x16 load(const std::byte* from) { return load_f16(from); }
};

// Some blocks that the queries of a tile see alike.
struct ValueBlocks {
  const std::byte* const* blocks;  // already at the first column
  const std::byte* const* next;    // the same place in the blocks of the next split, to be fetched; nullptr: none is
  const float* weights;            // of the first query and block
  int count;
  uint32_t visible;
};

// sums[r][16 c ...] += weight of query r * value, in the order of positions.
template <typename Values, int kRows, int kColumns, bool kAll>
MOTE_INLINE void add_values(const ValueBlocks& from, int64_t row_bytes, float* to, int64_t width) {
  F32x16 sums[kRows][kColumns];
  load_sums(to, width, sums);
  for (int b = 0; b < from.count; ++b) {
    const std::byte* value = from.blocks[b];
    const float* weights = from.weights + 16 * b;
    for (int slot = 0; slot < kKvBlockSlots; ++slot, value += row_bytes) {
      if (!kAll && (from.visible >> slot & 1) == 0) continue;
      F32x16 x[kColumns];
#pragma GCC unroll 8
      for (int c = 0; c < kColumns; ++c) {
        const int64_t at = 16 * c * Values::kElementBytes;
        x[c] = Values::load(value + at);
        if (at % 64 == 0 && from.next != nullptr) fetch_far(from.next[b] + slot * row_bytes + at);
      }
      add_products(weights + slot, kSplitLanes, x, sums);
    }
  }
  store_sums(sums, to, width);
}

// Columns of 16 values of some blocks, whose slots are `row_bytes` apart.
struct ValueColumns {
  const std::byte* const* blocks;  // at the first column
  const std::byte* const* next;    // as in ValueBlocks
  int count;                       // of blocks
  int columns;
  int64_t row_bytes;
};

// Rows [row, end) see the blocks, which are those from `block` on, alike. sums: at the first column
template <typename Values, Reading kReading, bool kAll>
void add_blocks(const QueryTile& tile, int row, int end, const ValueColumns& from, int block, float* sums,
                int64_t width) {
  const uint32_t visible = tile.visible[row * kSplitBlocks + block];
  for_tiles<kMostRows>(row, end, [&]<int kRows>(Constant<kRows>, int first) MOTE_INLINE_LAMBDA {
    constexpr int kColumns = beside(kRows, reads_in_order(kReading, kRows) ? 8 : 4);
    const float* weights = tile.scores + first * kSplitLanes + 16 * block;
    for_tiles<kColumns>(0, from.columns, [&]<int kCount>(Constant<kCount>, int column) MOTE_INLINE_LAMBDA {
      const std::byte *at[kSplitBlocks], *after[kSplitBlocks];
      for (int b = 0; b < from.count; ++b) at[b] = from.blocks[b] + 16 * column * Values::kElementBytes;
      float* to = sums + first * width + 16 * column;
      if (kAll && fetches_next(kReading, kRows, Values::kElementBytes) && from.next != nullptr) {
        for (int b = 0; b < from.count; ++b) after[b] = from.next[b] + 16 * column * Values::kElementBytes;
        add_values<Values, kRows, kCount, kAll>({at, after, weights, from.count, visible}, from.row_bytes, to, width);
      } else {
        add_values<Values, kRows, kCount, kAll>({at, nullptr, weights, from.count, visible}, from.row_bytes, to, width);
      }
    });
  });
}

// `count` blocks that all queries see whole, or one that runs of them see alike.
template <typename Values, Reading kReading>
void add_columns(const QueryTile& tile, const ValueColumns& from, int block, float* sums, int64_t width) {
  if (tile.full[block]) return add_blocks<Values, kReading, true>(tile, 0, tile.rows, from, block, sums, width);
  const uint32_t* visible = tile.visible + block;
  for (int row = 0, end = 0; row < tile.rows; row = end) {
    while (end < tile.rows && visible[end * kSplitBlocks] == visible[row * kSplitBlocks]) ++end;
    if (visible[row * kSplitBlocks] != 0) add_blocks<Values, kReading, false>(tile, row, end, from, block, sums, width);
  }
}

// Columns [column, column + count) of a block's values as floats, those of a slot behind one another.
template <typename Values>
MOTE_INLINE void widen_values(const std::byte* block, int64_t width, int64_t column, int64_t count, float* to) {
  for (int64_t slot = 0; slot < kKvBlockSlots; ++slot) {
    const std::byte* from = block + (slot * width + column) * Values::kElementBytes;
    for (int64_t i = 0; i < count; i += 16, to += 16) store_f32(to, Values::load(from + i * Values::kElementBytes));
  }
}

// Full blocks are added four at a time, which the nearest cache holds, or one after the other. What has to be converted
// for many queries is so once, some columns at a time.
template <typename Values, Reading kReading>
void add_float_values(const KvHead& head, const SplitBlocks& blocks, const QueryTile& tile, float* sums) {
  const int64_t width = padded_width(head.value_head_dim);
  const bool widens = Values::kElementBytes < 4 && tile.rows >= kManyRowsOfValues;
  const std::byte *values[kSplitBlocks], *next[kSplitBlocks];
  const auto block_of = [&](int64_t index) { return head.value_block(index); };
  const bool has_next = find_next<Values, kReading>(head, blocks, tile.rows, next, block_of);
  for (int b = 0; b < blocks.count; ++b) values[b] = block_of(blocks.index[b]);
  const int most = reads_in_order(kReading, tile.rows) ? 1 : kWideBlocks;
  for (int block = 0, count = 0; block < blocks.count; block += count) {
    count = 1;
    while (count < most && block + count < blocks.count && tile.full[block] && tile.full[block + count]) ++count;
    if (!widens) {
      const ValueColumns all = {values + block, has_next ? next + block : nullptr, count, static_cast<int>(width / 16),
                                width * Values::kElementBytes};
      add_columns<Values, kReading>(tile, all, block, sums, width);
      continue;
    }
    for (int64_t column = 0; column < width; column += kWideElements) {
      const int64_t elements = width - column < kWideElements ? width - column : kWideElements;
      const std::byte* wide[kWideBlocks];
      for (int b = 0; b < count; ++b) {
        float* to = reinterpret_cast<float*>(tile.wide) + b * kKvBlockSlots * kWideElements;
        widen_values<Values>(values[block + b], width, column, elements, to);
        wide[b] = reinterpret_cast<const std::byte*>(to);
      }
      const ValueColumns some = {wide, nullptr, count, static_cast<int>(elements / 16), elements * 4};
      add_columns<Float32Values, Reading::kStreams>(tile, some, block, sums + column, width);
    }
  }
}

// 32 bytes are a pair (int8) or two pairs (int4) of slots, 16 columns each.
struct Int8Values {
  static constexpr int kElementBytes = 1, kPairs = 1;
  static constexpr bool kSignedScales = false;
  using Transposer = Int8Transposer;
  MOTE_INLINE static void load(const std::byte* from, Pairs16* pairs) { pairs[0] = load_pairs_i8(from); }
};
struct Int4Values {
  static constexpr int kElementBytes = 1, kPairs = 2;
  static constexpr bool kSignedScales = true;
  using Transposer = Int4Transposer;
  MOTE_INLINE static void load(const std::byte* from, Pairs16* pairs) { load_pairs_i4(from, pairs[0], pairs[1]); }
};

inline constexpr float kLargestWeight = 32767.0f;

// The weights of all rows, which are at most 1, in 16 bits.
MOTE_INLINE void quantize_weights(int count, const QueryTile& tile) {
  for (int row = 0; row < tile.rows; ++row) {
    const float* weights = tile.scores + row * kSplitLanes;
    int16_t* to = tile.weights + row * kSplitLanes;
    for (int b = 0; b < count; ++b)
      store_i16(to + 16 * b, round_to_i32(max(load_f32(weights + 16 * b) * splat(kLargestWeight), splat(0.0f))));
  }
}

// The scales of a group of values in 16 bits. Those of slots that the query of row `row` does not see may be anything,
// and count as 0; so do those that are no number. Returns what 1 in 16 bits is.
template <bool kSigned>
MOTE_INLINE float quantize_scales(const std::byte* const* scales, int count, const QueryTile& tile, int row,
                                  int16_t* to) {
  const F32x16 zero = splat(0.0f), infinity = splat(__builtin_inff());
  const auto size_of = [](const F32x16& x) MOTE_INLINE_LAMBDA { return kSigned ? magnitude(x) : x; };
  const auto seen = [=](int b) MOTE_INLINE_LAMBDA {
    const F32x16 scale = load_f32(reinterpret_cast<const float*>(scales[b]));
    return tile.full[b] ? scale : select_lanes(tile.visible[row * kSplitBlocks + b], scale, zero);
  };
  F32x16 most = zero;
  for (int b = 0; b < count; ++b) most = max(size_of(seen(b)), most);
  const float largest = max_lanes(most);
  const F32x16 inverse = splat(largest > 1e-30f ? kLargestWeight / largest : 0.0f);
  for (int b = 0; b < count; ++b) {
    const F32x16 scaled = seen(b) * inverse;
    const F32x16 number = kSigned ? select_less(size_of(scaled), infinity, scaled, zero) : max(scaled, zero);
    store_i16(to + 16 * b, round_to_i32(number));
  }
  // An infinite value makes its scale infinite.
  return largest < __FLT_MAX__ ? largest * (32768.0f / (kLargestWeight * kLargestWeight)) : __builtin_nanf("");
}

// Weights times the scales of a group of values. What a query's are depends on what it sees and not on the others.
template <bool kSigned>
MOTE_INLINE void scale_weights(const std::byte* const* scales, int count, bool see_all, const QueryTile& tile) {
  int16_t in_words[kSplitLanes];
  float one = 0.0f;
  for (int row = 0; row < tile.rows; ++row) {
    const bool sees_the_same = row > 0 && (see_all || tile.positions[row] == tile.positions[row - 1]);
    if (!sees_the_same) one = quantize_scales<kSigned>(scales, count, tile, row, in_words);
    tile.weight_scales[row] = one;
    for (int lane = 0; lane < 16 * count; lane += 16) {
      multiply_i16(tile.scaled + row * kSplitLanes + lane, tile.weights + row * kSplitLanes + lane, in_words + lane);
    }
  }
}

// next: the same place in the blocks of the next split, of which each line is fetched; nullptr: none is
template <typename Values, int kRows, int kColumns>
MOTE_INLINE void dot_values(const std::byte* const* codes, const std::byte* const* next, int count,
                            const QueryTile& tile, int row, int64_t line_bytes, float* to, int64_t width) {
  constexpr int kLines = kKvBlockSlots / 2 / Values::kPairs;
  I32x16 sums[kRows][kColumns];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) sums[r][c] = splat_i32(0);
  }
  for (int b = 0; b < count; ++b) {
    const std::byte* from = codes[b];
    const int16_t* weights = tile.scaled + row * kSplitLanes + 16 * b;
    for (int line = 0; line < kLines; ++line, from += line_bytes, weights += 2 * Values::kPairs) {
      if (next != nullptr) fetch_far(next[b] + line * line_bytes);
      Pairs16 x[kColumns][Values::kPairs];
#pragma GCC unroll 8
      for (int c = 0; c < kColumns; ++c) Values::load(from + 32 * c, x[c]);
#pragma GCC unroll 2
      for (int p = 0; p < Values::kPairs; ++p) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
          for (int c = 0; c < kColumns; ++c)
            sums[r][c] = dot2_once(sums[r][c], x[c][p], weights + r * kSplitLanes + 2 * p);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const F32x16 scale = splat(tile.weight_scales[row + r]);
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) store_f32(to + r * width + 16 * c, to_f32(sums[r][c]) * scale);
  }
}

template <typename Values, Reading kReading>
void add_code_values(const KvHead& head, const SplitBlocks& blocks, const QueryTile& tile, float* sums) {
  constexpr int64_t kLines = kKvBlockSlots / 2 / Values::kPairs;
  const int64_t width = padded_width(head.value_head_dim);
  const std::byte* codes[kSplitBlocks];
  const std::byte* scales[kSplitBlocks];
  const std::byte* next[kSplitBlocks];
  const auto block_of = [&](int64_t index) { return head.value_block(index); };
  const bool has_next = find_next<Values, kReading>(head, blocks, tile.rows, next, block_of);
  bool see_all = true;
  for (int b = 0; b < blocks.count; ++b) {
    codes[b] = block_of(blocks.index[b]);
    see_all = see_all && tile.full[b];
  }
  quantize_weights(blocks.count, tile);
  for (int64_t column = 0; column < width; column += kKvGroup) {
    const int64_t line_bytes = column + kKvGroup <= width ? 64 : 32;
    for (int b = 0; b < blocks.count; ++b) {
      if (head.values_in_keys) {
        std::byte* to = tile.wide + b * kKvBlockSlots * (kKvGroup + 4);
        transpose_group<typename Values::Transposer>(head, block_of(blocks.index[b]), column, line_bytes / 2, to);
        codes[b] = to;
      }
      scales[b] = codes[b] + kLines * line_bytes;
      if (has_next) fetch_far(next[b] + kLines * line_bytes);
    }
    scale_weights<Values::kSignedScales>(scales, blocks.count, see_all, tile);
    for_tiles<kMostRows>(0, tile.rows, [&]<int kRows>(Constant<kRows>, int row) MOTE_INLINE_LAMBDA {
      constexpr int kColumns = beside(kRows, 2);
      const auto run = [&]<int kCount>(Constant<kCount>, int64_t at) MOTE_INLINE_LAMBDA {
        const std::byte *from[kSplitBlocks], *after[kSplitBlocks];
        for (int b = 0; b < blocks.count; ++b) from[b] = codes[b] + 2 * at;
        float* to = sums + row * width + column + at;
        if (fetches_next(kReading, kRows, Values::kElementBytes) && has_next) {
          for (int b = 0; b < blocks.count; ++b) after[b] = next[b] + 2 * at;
          dot_values<Values, kRows, kCount>(from, after, blocks.count, tile, row, line_bytes, to, width);
        } else {
          dot_values<Values, kRows, kCount>(from, nullptr, blocks.count, tile, row, line_bytes, to, width);
        }
      };
      if (kColumns == 2 && line_bytes == 64) {
        run(Constant<2>(), 0);
      } else {
        for (int64_t at = 0; at < line_bytes / 2; at += 16) run(Constant<1>(), at);
      }
    });
    for (int b = 0; b < blocks.count; ++b) {
      codes[b] = scales[b] + 64;
      if (has_next) next[b] += kLines * line_bytes + 64;
    }
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
