// Products of queries with blocks of keys: 16 positions a vector. Only for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/pairs.h"
#include "kernels/ops/attention/tiles.h"

namespace mote {
inline namespace MOTE_ISA {

struct Float32Keys {
  static constexpr int kElementBytes = 4;
  MOTE_INLINE static F32x16 load(const std::byte* block, int64_t d) {
    return load_f32(reinterpret_cast<const float*>(block) + 16 * d);
  }
};
struct Float16Keys {
  static constexpr int kElementBytes = 2;
  MOTE_INLINE static F32x16 load(const std::byte* block, int64_t d) { return load_f16(block + 32 * d); }
};

// Blocks of keys of a head, and what to prefetch while each is multiplied: keys some blocks ahead and the values of the
// same positions, or keys of the next split. Hardware prefetching would start anew in every block and page.
struct KeyBlocks {
  const std::byte* const* keys;
  const std::byte* const* next_keys;
  const std::byte* const* values;
  int64_t key_bytes;  // of a block

  // Prefetches line i (64 bytes) of the keys ahead of block b or, after their last line, of the values of block b.
  MOTE_INLINE void fetch(int b, int64_t i) const {
    const int64_t at = 64 * i;
    __builtin_prefetch(at < key_bytes ? next_keys[b] + at : values[b] + (at - key_bytes));
  }
};

// scores[r][16 b + i] = query r . key of slot i of block b, for kRows queries and kBlocks blocks.
template <typename Keys, Reading kReading, bool kFetchesNext, int kRows, int kBlocks>
MOTE_INLINE void score_floats(const KvHead& head, const QueryTile& tile, int row, const KeyBlocks& blocks,
                              float* scores) {
  const int64_t width = head.head_dim;
  const float* queries = tile.queries + row * width;
  F32x16 sums[kRows][kBlocks];
  zero_sums(sums);
  for (int64_t d = 0; d < width; ++d) {
    F32x16 keys[kBlocks];
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      keys[b] = Keys::load(blocks.keys[b], d);
      if (kFetchesNext && d * Keys::kElementBytes % 4 == 0)
        fetch_far(blocks.next_keys[b] + 16 * Keys::kElementBytes * d);
      if (!fetches(kReading, kRows)) continue;
      for (int i = 0; i < Keys::kElementBytes / 2; ++i) blocks.fetch(b, Keys::kElementBytes / 2 * d + i);
    }
    add_products(queries + d, width, keys, sums);
  }
  store_sums(sums, scores, kSplitLanes);
}

// As many elements of as many blocks as stay in the nearest cache as floats.
inline constexpr int kWideKeys = beside(kMostRows, 4);
inline constexpr int64_t kKeyElements = kWideBytes / (kWideKeys * kKvBlockSlots * 4) / 64 * 64;

// Some elements of some blocks: of the keys, and as floats.
struct KeyElements {
  const std::byte* keys[kWideKeys];
  float* wide[kWideKeys];
  int64_t count;
  bool are_first;  // else their products are added to those of the elements before
};

// kWidens: the keys are read, and left as floats for the queries that follow.
template <typename Keys, bool kWidens, int kRows, int kBlocks>
MOTE_INLINE void add_scores(const float* queries, int64_t width, const KeyElements& from, int block, float* scores) {
  F32x16 sums[kRows][kBlocks];
  if (from.are_first) {
    zero_sums(sums);
  } else {
    load_sums(scores, kSplitLanes, sums);
  }
  for (int64_t d = 0; d < from.count; ++d) {
    F32x16 keys[kBlocks];
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      keys[b] = Keys::load(from.keys[block + b], d);
      if (kWidens) store_f32(from.wide[block + b] + 16 * d, keys[b]);
    }
    add_products(queries + d, width, keys, sums);
  }
  store_sums(sums, scores, kSplitLanes);
}

// Rows [row, end) of a tile with the blocks from `first` on, `count` of them.
template <typename Keys, bool kWidens>
void score_elements(const QueryTile& tile, int row, int end, int64_t width, int64_t element, const KeyElements& from,
                    int first, int count) {
  for_tiles<kMostRows>(row, end, [&]<int kRows>(Constant<kRows>, int at) MOTE_INLINE_LAMBDA {
    constexpr int kBlocks = beside(kRows, kWideKeys);
    for_tiles<kBlocks>(0, count, [&]<int kCount>(Constant<kCount>, int block) MOTE_INLINE_LAMBDA {
      add_scores<Keys, kWidens, kRows, kCount>(tile.queries + at * width + element, width, from, block,
                                               tile.scores + at * kSplitLanes + 16 * (first + block));
    });
  });
}

// Scores of many queries. What has to be converted is so once, for the first of them.
template <typename Keys>
void score_many(const KvHead& head, const SplitBlocks& blocks, const QueryTile& tile) {
  constexpr bool kWidens = Keys::kElementBytes < 4;
  const int64_t width = head.head_dim;
  for (int first = 0; first < blocks.count; first += kWideKeys) {
    const int count = blocks.count - first < kWideKeys ? blocks.count - first : kWideKeys;
    for (int64_t element = 0; element < width; element += kKeyElements) {
      KeyElements from;
      from.count = width - element < kKeyElements ? width - element : kKeyElements;
      from.are_first = element == 0;
      for (int b = 0; b < count; ++b) {
        from.keys[b] = head.key_block(blocks.index[first + b]) + 16 * element * Keys::kElementBytes;
        from.wide[b] = reinterpret_cast<float*>(tile.wide) + b * 16 * kKeyElements;
      }
      const int converting = kWidens ? kMostRows : tile.rows;
      score_elements<Keys, kWidens>(tile, 0, converting, width, element, from, first, count);
      for (int b = 0; kWidens && b < count; ++b) from.keys[b] = reinterpret_cast<const std::byte*>(from.wide[b]);
      score_elements<Float32Keys, false>(tile, converting, tile.rows, width, element, from, first, count);
    }
  }
}

// 32 bytes of a block are two (int8) or four (int4) elements of 16 keys.
struct Int8Keys {
  static constexpr int kElementBytes = 1, kPairs = 1;
  MOTE_INLINE static void load(const std::byte* line, Pairs16* pairs) { pairs[0] = load_pairs_i8(line); }
};
struct Int4Keys {
  static constexpr int kElementBytes = 1, kPairs = 2;
  MOTE_INLINE static void load(const std::byte* line, Pairs16* pairs) { load_pairs_i4(line, pairs[0], pairs[1]); }
};

// Exact sums of products over lines [first_line, end_line) of a block, which are one group of 32 elements.
template <typename Keys, Reading kReading, bool kFetchesNext, int kRows, int kBlocks>
MOTE_INLINE void dot_group(const int16_t* codes, int64_t code_stride, const KeyBlocks& blocks, int64_t first_line,
                           int64_t end_line, I32x16 (&sums)[kRows][kBlocks]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) sums[r][b] = splat_i32(0);
  }
  for (int64_t line = first_line; line < end_line; ++line) {
    Pairs16 keys[kBlocks][Keys::kPairs];
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      Keys::load(blocks.keys[b] + 32 * line, keys[b]);
      if (fetches(kReading, kRows)) blocks.fetch(b, line);
      if (kFetchesNext && line % 2 == 0) fetch_far(blocks.next_keys[b] + 32 * line);
    }
#pragma GCC unroll 2
    for (int p = 0; p < Keys::kPairs; ++p) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const int16_t* pair = codes + r * code_stride + 2 * (Keys::kPairs * line + p);
#pragma GCC unroll 8
        for (int b = 0; b < kBlocks; ++b) sums[r][b] = dot2(sums[r][b], keys[b][p], pair);
      }
    }
  }
}

template <typename Keys, Reading kReading, bool kFetchesNext, int kRows, int kBlocks>
MOTE_INLINE void score_codes(const KvHead& head, const QueryTile& tile, int row, const KeyBlocks& blocks,
                             float* scores) {
  constexpr int64_t kLineElements = 2 * Keys::kPairs;
  const int64_t code_stride = padded_width(head.head_dim);
  const int64_t lines = (head.head_dim + kLineElements - 1) / kLineElements;
  const int64_t groups = (head.head_dim + kKvGroup - 1) / kKvGroup;
  for (int64_t group = 0; group < groups; ++group) {
    constexpr int64_t kGroupLines = kKvGroup / kLineElements;
    const int64_t end_line = (group + 1) * kGroupLines < lines ? (group + 1) * kGroupLines : lines;
    I32x16 sums[kRows][kBlocks];
    dot_group<Keys, kReading, kFetchesNext, kRows, kBlocks>(tile.codes + row * code_stride, code_stride, blocks,
                                                            group * kGroupLines, end_line, sums);
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      const F32x16 key_scales = load_f32(reinterpret_cast<const float*>(blocks.keys[b] + 32 * lines) + 16 * group);
      if (fetches(kReading, kRows)) {
        blocks.fetch(b, lines + 2 * group);
        blocks.fetch(b, lines + 2 * group + 1);
      }
      if (kFetchesNext) fetch_far(blocks.next_keys[b] + 32 * lines + 64 * group);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        float* to = scores + r * kSplitLanes + 16 * b;
        const F32x16 scale = key_scales * splat(tile.code_scales[(row + r) * groups + group]);
        const F32x16 part = to_f32(sums[r][b]);
        store_f32(to, group == 0 ? part * scale : fma(part, scale, load_f32(to)));
      }
    }
  }
}

// Scores of all queries of a tile with all blocks, some queries by some blocks at a time.
template <typename Keys, Reading kReading, bool kCodes>
void score_all(const KvHead& head, const SplitBlocks& blocks, QueryTile& tile) {
  if constexpr (!kCodes) {
    if (tile.rows >= kManyRows) return score_many<Keys>(head, blocks, tile);
  }
  constexpr int kAhead = 4;  // blocks
  const std::byte* keys[kSplitBlocks + kAhead];
  const std::byte* values[kSplitBlocks];
  for (int b = 0; b < blocks.count; ++b) {
    keys[b] = head.key_block(blocks.index[b]);
    values[b] = head.value_block(blocks.index[b]);
  }
  // After the last block, most often the next split is read, which follows in the cache.
  for (int b = blocks.count; b < blocks.count + kAhead; ++b) {
    const int64_t next = blocks.index[blocks.count - 1] + 1 + b - blocks.count;
    keys[b] = head.has_block(next) ? head.key_block(next) : keys[b - 1];
  }
  const std::byte* next[kSplitBlocks];
  const bool has_next =
      find_next<Keys, kReading>(head, blocks, tile.rows, next, [&](int64_t index) { return head.key_block(index); });
  const auto score = [&]<int kFetchesNext, int kRows, int kBlocks>(Constant<kFetchesNext>, Constant<kRows>,
                                                                   Constant<kBlocks>, int row,
                                                                   const KeyBlocks& these) MOTE_INLINE_LAMBDA {
    float* scores = tile.scores + row * kSplitLanes + 16 * (these.keys - keys);
    if constexpr (kCodes) {
      score_codes<Keys, kReading, kFetchesNext != 0, kRows, kBlocks>(head, tile, row, these, scores);
    } else {
      score_floats<Keys, kReading, kFetchesNext != 0, kRows, kBlocks>(head, tile, row, these, scores);
    }
  };
  const auto run = [&]<int kRows, int kBlocks>(Constant<kRows> rows, Constant<kBlocks> at_once, int row,
                                               int block) MOTE_INLINE_LAMBDA {
    if (fetches_next(kReading, kRows, Keys::kElementBytes) && has_next) {
      const KeyBlocks these = {keys + block, next + block, values + block, head.key_block_bytes};
      score(Constant<true>(), rows, at_once, row, these);
    } else {
      const KeyBlocks these = {keys + block, keys + block + kAhead, values + block, head.key_block_bytes};
      score(Constant<false>(), rows, at_once, row, these);
    }
  };
  // Few queries take all blocks in one pass; many take as many at a time as stay in the nearest cache.
  const int together = tile.rows < kMostRows ? blocks.count : beside(kMostRows, 4);
  for (int first = 0; first < blocks.count; first += together) {
    const int end = first + together < blocks.count ? first + together : blocks.count;
    for_tiles<kMostRows>(0, tile.rows, [&]<int kRows>(Constant<kRows> rows, int row) MOTE_INLINE_LAMBDA {
      constexpr int kBlocks = reads_in_order(kReading, kRows) && !kCodes ? 1 : beside(kRows, 4);
      int block = first;
      for (; block + kBlocks <= end; block += kBlocks) run(rows, Constant<kBlocks>(), row, block);
      for (; block < end; ++block) run(rows, Constant<1>(), row, block);
    });
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
