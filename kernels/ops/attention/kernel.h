// What the instruction sets implement of mote.attention: softmax over a split of 256 positions of one head of a cache,
// for a tile of queries, and the sum of splits. A query's bits depend on its position and on the cache alone: splits
// begin at multiples of 256, and every sum has one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/state.h"

namespace mote {

inline constexpr int64_t kSplitPositions = 256;
// The most blocks of 16 slots that a split lies in: one more than it fills, because 16 positions of which only the
// first are sinks lie in two.
inline constexpr int kSplitBlocks = static_cast<int>(kSplitPositions) / kKvBlockSlots + 1;
inline constexpr int kSplitLanes = kSplitBlocks * kKvBlockSlots;
inline constexpr int kQueryRows = 64;  // most queries of a QueryTile
inline constexpr int kFewRows = 5;     // most that take less time to multiply than the cache takes to be read

constexpr int64_t padded_width(int64_t width) { return (width + 15) / 16 * 16; }

// One head's part of a cache.
struct KvHead {
  KvType type = KvType::kFloat32;
  int32_t head_dim = 0;
  int32_t value_head_dim = 0;  // elements of values that are summed
  int64_t key_block_bytes = 0;
  int64_t value_block_bytes = 0;
  std::byte* const* pages = nullptr;
  int64_t num_pages = 0;
  int64_t keys_offset = 0;  // of the head's first block in a page
  int64_t values_offset = 0;
  bool values_in_keys = false;  // values are the first value_head_dim elements of keys: no block holds values

  bool has_block(int64_t block) const {
    return block / kKvPageBlocks < num_pages && pages[block / kKvPageBlocks] != nullptr;
  }
  std::byte* key_block(int64_t block) const {
    return pages[block / kKvPageBlocks] + keys_offset + block % kKvPageBlocks * key_block_bytes;
  }
  // Where the values lie; of values in keys, where their keys do.
  std::byte* value_block(int64_t block) const {
    if (values_in_keys) return key_block(block);
    return pages[block / kKvPageBlocks] + values_offset + block % kKvPageBlocks * value_block_bytes;
  }
};

// Where the positions of a split lie.
struct SplitBlocks {
  int count = 0;
  int64_t index[kSplitBlocks];  // of the block in its cache
  int64_t first[kSplitBlocks];  // position of the first slot
  uint32_t held[kSplitBlocks];  // bit i: slot i holds position first + i
  bool follows = false;         // the thread attended the blocks before these last

  // The block after a split that is to this split's block b as the next split's is, if positions follow.
  int64_t after(int b) const { return index[count - 1] + 1 + b; }
};

struct ScoreRule {
  float softcap = 0;           // 0: none
  int64_t window = 0;          // 0: none
  int64_t num_sinks = 0;       // positions that every window sees
  bool bidirectional = false;  // queries also see what follows them, as far as the window reaches
  bool is_chunked = false;     // windows begin at multiples of their size

  // The first position that the query at `position` may see, sinks left out; it may be negative.
  int64_t first_seen(int64_t position) const {
    if (window == 0) return 0;
    return is_chunked ? position / window * window : position - window + 1;
  }
  // The last position that the query at `position` may see.
  int64_t last_seen(int64_t position) const {
    if (!bidirectional) return position;
    return window == 0 ? INT64_MAX : position + window - 1;
  }
};

// Softmax of some queries over some positions: sums / totals is the weighted mean of values; maxima is what was
// subtracted before exp.
struct SoftmaxSums {
  float* maxima = nullptr;  // [rows], -infinity: no position was seen
  float* totals = nullptr;  // [rows]
  float* sums = nullptr;    // [rows, padded_width(value_head_dim)]
};

// Queries that read the same head of the cache, with working memory.
struct QueryTile {
  int rows = 0;
  float* queries = nullptr;          // [rows, head_dim], scaled by prepare
  float* slopes = nullptr;           // [rows], ALiBi
  int64_t* positions = nullptr;      // [rows]
  const int64_t** chosen = nullptr;  // [rows], the positions that a query sees, ascending; nullptr: all
  int64_t num_chosen = 0;            // of each row
  int64_t stride = 1;                // of the cache, in which chosen positions are counted
  const float** biases = nullptr;    // [rows], what is added to the scores of keys 0, 1 .. behind; nullptr: none
  int64_t num_biases = 0;            // of each row
  int16_t* codes = nullptr;          // [rows, padded_width(head_dim)], the queries in 16 bits
  float* code_scales = nullptr;      // [rows, groups of 32]
  float* scores = nullptr;           // [rows, kSplitLanes], later their exponentials: the weights
  int16_t* weights = nullptr;        // [rows, kSplitLanes], the weights in 16 bits
  int16_t* scaled = nullptr;         // [rows, kSplitLanes], those times scales of values
  float* weight_scales = nullptr;    // [rows], of `scaled`
  uint32_t* visible = nullptr;       // [rows, kSplitBlocks], bit i: the query sees slot i
  std::byte* wide = nullptr;         // [kWideBytes], what many queries share, as it is multiplied
  bool full[kSplitBlocks];           // all queries see all slots; `visible` says nothing of such a block
};

// Memory for QueryTile::wide: the weights of 16 rows with all slots of a split, or 64 elements of four blocks as
// floats, or 32 of all blocks of a split as transposed codes.
inline constexpr int kWideBlocks = 4;
inline constexpr int64_t kWideElements = 64;
inline constexpr int64_t kWideBytes = kSplitLanes * 16 * 4;
static_assert(kWideBytes >= kWideBlocks * kKvBlockSlots * kWideElements * 4);
static_assert(kWideBytes >= kSplitBlocks * kKvBlockSlots * (kKvGroup + 4));

struct AttentionKernel {
  static constexpr std::string_view kRole = "attention";

  // Writes `head_dim` floats of a key and `value_head_dim` floats of a value to a slot; of values in keys, the key
  // alone. turned_key and turned_value are memory of as many floats, and may be key and value.
  void (*append)(const KvHead& head, int64_t slot, const float* key, const float* value, float* turned_key,
                 float* turned_value);
  // Scales the queries; if the cache is int8 or int4, fills codes and code_scales from them, turned as keys are.
  void (*prepare)(const KvHead& head, float scale, QueryTile& tile);
  // Overwrites `result` with what the tile's queries see of the blocks.
  void (*attend)(const KvHead& head, const SplitBlocks& blocks, const ScoreRule& rule, QueryTile& tile,
                 const SoftmaxSums& result);
  // Adds `next` to `sums`, whose maxima start at -infinity, totals and sums at 0. width is a multiple of 16.
  void (*fold)(const SoftmaxSums& sums, const SoftmaxSums& next, int rows, int64_t width);
  // to[0..value_head_dim) = sums * factor, turned back. `to` may be the sums.
  void (*finish)(const KvHead& head, const float* sums, float factor, float* to);
  // tile.scores[row, 16 b + i] = the product of a query and the key in slot i of block b, whatever the query may see.
  void (*score)(const KvHead& head, const SplitBlocks& blocks, QueryTile& tile);
};

}  // namespace mote
