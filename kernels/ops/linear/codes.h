// What the products of int8 activations and tiles of 1 to 8 bits share. Only for *_int8, *_panels and *_ISA.cpp.
#pragma once

#include <utility>

#include "kernels/ops/linear/tiles.h"

namespace mote {
inline namespace MOTE_ISA {

// The start of the sums of a group's products, such that they end as the sums of products with signed codes.
template <bool kSigned = kCodesAreSigned>
MOTE_INLINE I32x16 first_sums(const int32_t* offset) {
  return splat_i32(kSigned ? 0 : *offset);
}

// Sums of each row's signed codes in a group, given the sums of codes as they are multiplied.
template <bool kSigned = kCodesAreSigned>
MOTE_INLINE I32x16 code_sums(int bits, const I32x16& sums, int64_t group_size) {
  return kSigned ? sums : sums - splat_i32(static_cast<int32_t>(code_offset(bits) * group_size));
}

// function(constant) for the most bits that codes have, of which add_chunk_products makes a difference.
template <typename Function>
MOTE_INLINE void with_most_bits(int bits, const Function& function) {
  if constexpr (kWideMatters) {
    if (bits <= 4) return function(std::integral_constant<int, 4>());
    if (bits == 5) return function(std::integral_constant<int, 5>());
    if (bits == 6) return function(std::integral_constant<int, 6>());
    if (bits == 7) return function(std::integral_constant<int, 7>());
  }
  function(std::integral_constant<int, 8>());
}

#if defined(MOTE_HAS_DOT_LANES)
// The products of kCount quads of a panel with a run of kRows tokens, added to their totals. Not unrolled: gcc would
// load the codes of several quads first, for which there are no registers.
template <int kRows, int kCount>
MOTE_INLINE void add_panel_lanes(const std::byte* quads, const int8_t* codes, I32x16* totals) {
#pragma GCC unroll 1
  for (int64_t j = 0; j < kCount; ++j) {
    const Bytes64 weights = load_bytes(quads + 64 * j);
    const auto lanes = load_lanes<kRows>(codes + 4 * j * kRows);
    unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA { totals[t] = dot4_lane<t>(totals[t], weights, lanes); });
  }
}
#endif

inline constexpr int kRun = run_rows(CodeLayout::kQuads);

// body(first token, number of tokens as a constant) for each run of a block of `tokens`, from token `first` on.
template <typename Body>
MOTE_INLINE void for_each_run(int tokens, int first, const Body& body) {
  for (; first + kRun <= tokens; first += kRun) body(first, std::integral_constant<int, kRun>());
  unroll<kRun - 1>([&](auto index) MOTE_INLINE_LAMBDA {
    if (tokens - first == index + 1) body(first, std::integral_constant<int, index + 1>());
  });
}

MOTE_INLINE F32x16 finish_sums(const CodeBlock& x, int64_t t, const I32x16& sums, const I32x16& weight_sums,
                               const F32x16& weight_scale) {
  return splat(x.scales[t]) * (weight_scale * to_f32(sums - splat_i32(x.zeros[t]) * weight_sums));
}

// start_rows and finish_rows are for kernels that keep sums in y because registers cannot hold them: 16 for each token
// and stream (block of 16 weight rows), int32 until finish_rows makes them floats.
// offset: of all weights, as they are multiplied
MOTE_INLINE void start_rows(const CodeBlock& x, int streams, int32_t offset, float* y, int64_t stride) {
  for (int t = 0; t < x.count; ++t) {
    const I32x16 start =
        splat_i32(static_cast<int32_t>(static_cast<uint32_t>(-offset) * static_cast<uint32_t>(x.sums[t])));
    for (int s = 0; s < streams; ++s) store_i32(y + t * stride + 16 * s, start);
  }
}
// weight_sums(s): int32 [16], the sums of multiplier * code of a stream's rows
template <typename WeightSums>
MOTE_INLINE void finish_rows(const TileBlocks& w, const CodeBlock& x, const WeightSums& weight_sums, float* y,
                             int64_t stride) {
  for (int s = 0; s < w.count; ++s, y += 16) {
    const I32x16 sums_of_row = load_i32(weight_sums(s));
    const F32x16 scale = load_f32(w.row_scales(s));
    for (int t = 0; t < x.count; ++t)
      store_f32(y + t * stride, finish_sums(x, t, load_i32(y + t * stride), sums_of_row, scale));
  }
}

// Some consecutive groups of columns of a product.
struct Range {
  int64_t first_group;
  int64_t groups;
  bool is_first;
  bool is_last;
};

// unpack(stream, group of the range, tile) for every tile of a range, streams side by side: memory answers several of
// them faster than one.
template <typename Function>
MOTE_INLINE void for_each_tile(const TileBlocks& w, const Range& range, int bits, const Function& unpack) {
  const int64_t bytes = tile_bytes(bits, w.group_size);
  for (int64_t g = 0; g < range.groups; ++g) {
    for (int s = 0; s < w.count; ++s) {
      const std::byte* tile = w.blocks[s] + (range.first_group + g) * bytes;
      fetch(tile, bytes);
      unpack(s, g, tile);
    }
  }
}

// Fetches one of `shares` parts of what is likely multiplied after a range: memory answers while the range is.
MOTE_INLINE void fetch_after(const TileBlocks& w, const Range& range, int64_t share, int64_t shares) {
  if (range.is_last && w.ahead == 0) return;
  const int64_t bytes = tile_bytes(w.bits, w.group_size), range_bytes = range.groups * bytes;
  const int64_t after = range.is_last ? w.ahead : (range.first_group + range.groups) * bytes;
  const int64_t lines = (range_bytes + 63) / 64, end = lines * (share + 1) / shares;
  for (int s = 0; s < w.count; ++s) {
    for (int64_t line = lines * share / shares; line < end; ++line)
      __builtin_prefetch(w.blocks[s] + after + 64 * line, 0, 2);
  }
}

// store(j, codes) for vector j of a tile, of 16 rows x 4 columns. Adds the sums of multiplier * code of its rows to
// weight_sums.
template <typename Bits, typename Store>
MOTE_INLINE void unpack_tile(Bits bits, const std::byte* tile, int64_t group_size, const I32x16& multipliers,
                             int32_t* weight_sums, const Store& store) {
  I32x16 codes_alone = splat_i32(0);
  for (int64_t chunk = 0; chunk < group_size / kChunk; ++chunk) {
    Bytes64 codes[kQuads];
    unpack_width(bits, tile, group_size, chunk, codes);
    unroll<kQuads>([&](auto j) MOTE_INLINE_LAMBDA {
      codes_alone = dot4<kMostBits<Bits> == 8>(codes_alone, codes[j], kOnes);
      store(chunk * kQuads + j, codes[j]);
    });
  }
  store_i32(weight_sums, load_i32(weight_sums) + multipliers * code_sums(bits, codes_alone, group_size));
}

// multiply(range) for ranges of at most `columns`, a multiple of the group size.
template <typename Function>
MOTE_INLINE void for_each_range(const TileBlocks& w, int64_t columns, const Function& multiply) {
  const int64_t groups_at_once = columns / w.group_size;
  for (int64_t g = 0; g < w.groups; g += groups_at_once) {
    const int64_t groups = w.groups - g < groups_at_once ? w.groups - g : groups_at_once;
    multiply(Range{g, groups, g == 0, g + groups == w.groups});
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
