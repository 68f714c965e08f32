// Float activations x tiles of 1 to 8 bits: codes become floats in registers.
#include "kernels/ops/linear/tiles.h"

// Before loops over the quads of a chunk, whose bodies are long: builds for size keep them loops.
#if defined(MOTE_SMALL_KERNELS) && defined(__clang__)
#define MOTE_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define MOTE_ROLLED
#endif

namespace mote {
inline namespace MOTE_ISA {
namespace {

// Table from code_at (formats.h) of up to 4 bits to the code as a float.
template <int kBits>
struct CodeValues {
  alignas(64) float of[16];
  constexpr CodeValues() : of() {
    for (int code = 0; code < 16; ++code) of[code] = static_cast<float>(code - code_offset(kBits));
  }
};
template <int kBits>
inline constexpr CodeValues<kBits> kCodeValues;

// Column i of a quad (16 rows x 4 columns), as floats.
template <int i, typename Bits>
MOTE_INLINE F32x16 column_of(Bits bits, const I32x16& words) {
#if defined(__AVX512F__)
  if constexpr (kMostBits<Bits> <= 4)
    return lookup(load_f32(kCodeValues<kMostBits<Bits>>.of), shift_right<8 * i>(words));
#endif
  if constexpr (kCodesAreSigned) return to_f32(shift_right<24>(shift_left<24 - 8 * i>(words)));
  return to_f32((shift_right<8 * i>(words) & splat_i32(255)) - splat_i32(code_offset(bits)));
}

// The codes of a chunk as floats, [32 columns][16 rows].
template <typename Bits>
MOTE_INLINE void unpack_floats(Bits bits, const std::byte* tile, int64_t group_size, int64_t chunk, float* columns) {
  Bytes64 quads[kQuads];
  unpack_width(bits, tile, group_size, chunk, quads);
  MOTE_ROLLED
  for (int j = 0; j < kQuads; ++j) {
    const I32x16 words = as_words(quads[j]);
    unroll<4>([&](auto i) MOTE_INLINE_LAMBDA { store_f32(columns + 16 * (4 * j + i), column_of<i>(bits, words)); });
  }
}

// For the kTokens rows that `values` and `y` begin with: y += multiplier * the products of one group.
template <int kTokens>
MOTE_INLINE void add_group(const float* columns, int64_t group_size, const F32x16& multiplier, const float* values,
                           int64_t pitch, float* y, int64_t stride) {
  F32x16 sums[kTokens];
  for (int t = 0; t < kTokens; ++t) sums[t] = splat(0.0f);
  for (int64_t k = 0; k < group_size; ++k) {
    const F32x16 column = load_f32(columns + 16 * k);
    for (int t = 0; t < kTokens; ++t) sums[t] = fma(column, splat(values[k * pitch + t]), sums[t]);
  }
  for (int t = 0; t < kTokens; ++t) store_f32(y + t * stride, fma(multiplier, sums[t], load_f32(y + t * stride)));
}

MOTE_INLINE void add_block(const float* columns, int64_t group_size, const F32x16& multiplier, const FloatBlock& x,
                           int64_t group, float* y, int64_t stride) {
  const float* values = x.values + group * group_size * x.count;
  int t = 0;
  for (; t + 4 <= x.count; t += 4)
    add_group<4>(columns, group_size, multiplier, values + t, x.count, y + t * stride, stride);
  for (; t < x.count; ++t) add_group<1>(columns, group_size, multiplier, values + t, x.count, y + t * stride, stride);
}

// Adds the products of each of kLanes tiles to its sum, side by side, since every addition to a sum waits for the one
// before. kConsecutive: tiles are consecutive groups of a block, with values of their own; else one group of several
// blocks.
template <int kLanes, bool kConsecutive, typename Bits>
MOTE_INLINE void add_groups(Bits bits, const std::byte* const* tiles, int64_t group_size, const float* values,
                            F32x16* sums) {
  for (int64_t chunk = 0; chunk < group_size / kChunk; ++chunk, values += kChunk) {
    Bytes64 quads[kLanes][kQuads];
    unroll<kLanes>([&](auto lane) { unpack_width(bits, tiles[lane], group_size, chunk, quads[lane]); });
    MOTE_ROLLED
    for (int j = 0; j < kQuads; ++j) {
      I32x16 words[kLanes];
      unroll<kLanes>([&](auto lane) { words[lane] = as_words(quads[lane][j]); });
      unroll<4>([&](auto i) MOTE_INLINE_LAMBDA {
        unroll<kLanes>([&](auto lane) MOTE_INLINE_LAMBDA {
          const float* value = values + (kConsecutive ? lane * group_size : 0) + 4 * j + i;
          sums[lane] = fma(column_of<i>(bits, words[lane]), splat(*value), sums[lane]);
        });
      });
    }
  }
}

// One token, up to kMaxStreams blocks side by side.
template <typename Bits>
void multiply_blocks(Bits bits, const TileBlocks& w, const float* values, float* y) {
  const std::byte* tiles[kMaxStreams];
  F32x16 totals[kMaxStreams];
  for (int s = 0; s < kMaxStreams; ++s) {
    tiles[s] = w.blocks[s < w.count ? s : 0];  // a missing stream repeats the first, from cache, and is ignored
    totals[s] = splat(0.0f);
  }
  const int64_t bytes = tile_bytes(bits, w.group_size);
  for (int64_t g = 0; g < w.groups; ++g, values += w.group_size) {
    F32x16 sums[kMaxStreams];
    for (int s = 0; s < kMaxStreams; ++s) sums[s] = splat(0.0f);
    add_groups<kMaxStreams, false>(bits, tiles, w.group_size, values, sums);
    for (int s = 0; s < kMaxStreams; ++s) {
      totals[s] = fma(to_f32(load_multipliers(bits, tiles[s], w.group_size)), sums[s], totals[s]);
      tiles[s] += bytes;
      fetch(tiles[s], bytes);
    }
  }
  for (int s = 0; s < w.count; ++s) store_f32(y + 16 * s, load_f32(w.row_scales(s)) * totals[s]);
}

template <typename Bits>
void multiply_bits(Bits bits, const TileBlocks& w, const FloatBlock* x, int64_t num_blocks, float* y, int64_t stride) {
  constexpr int64_t kMaxGroup = 256;
  float columns[16 * kMaxGroup];
  const int64_t bytes = tile_bytes(bits, w.group_size);
  for (int s = 0; s < w.count; ++s) {
    const std::byte* tile = w.blocks[s];
    for (int64_t g = 0; g < w.groups; ++g, tile += bytes) {
      fetch(tile, bytes);
      for (int64_t chunk = 0; chunk < w.group_size / kChunk; ++chunk) {
        unpack_floats(bits, tile, w.group_size, chunk, columns + 16 * kChunk * chunk);
      }
      const F32x16 multiplier = to_f32(load_multipliers(bits, tile, w.group_size));
      float* to = y + 16 * s;
      for (int64_t b = 0; b < num_blocks; to += x[b].count * stride, ++b) {
        add_block(columns, w.group_size, multiplier, x[b], g, to, stride);
      }
    }
  }
}

// y = change(stream, y) for the sums of each block of rows and token.
template <typename Function>
MOTE_INLINE void for_each_sum(const TileBlocks& w, const FloatBlock* x, int64_t num_blocks, float* y, int64_t stride,
                              const Function& change) {
  for (int64_t b = 0; b < num_blocks; ++b) {
    for (int t = 0; t < x[b].count; ++t, y += stride) {
      for (int s = 0; s < w.count; ++s) store_f32(y + 16 * s, change(s, y + 16 * s));
    }
  }
}

void multiply(const TileBlocks& w, const FloatBlock* x, int64_t num_blocks, float* y, int64_t stride) {
  if (num_blocks == 1 && x->count == 1) {
    with_constant<FewWidths>(w.bits, [&](auto bits) { multiply_blocks(bits, w, x->values, y); });
    return;
  }
  for_each_sum(w, x, num_blocks, y, stride, [](int, const float*) { return splat(0.0f); });
  with_constant<FewWidths>(w.bits, [&](auto bits) { multiply_bits(bits, w, x, num_blocks, y, stride); });
  for_each_sum(w, x, num_blocks, y, stride,
               [&](int s, const float* sums) { return load_f32(w.row_scales(s)) * load_f32(sums); });
}

constexpr FloatProducts kFloats = {multiply};
#if defined(__AVX2__)
template <int kLanes, typename Bits>
MOTE_INLINE void add_consecutive(Bits bits, const std::byte* tile, int64_t group_size, const float* values,
                                 F32x16& total) {
  const std::byte* tiles[kLanes];
  F32x16 sums[kLanes];
  unroll<kLanes>([&](auto lane) {
    tiles[lane] = tile + lane * tile_bytes(bits, group_size);
    sums[lane] = splat(0.0f);
  });
  add_groups<kLanes, true>(bits, tiles, group_size, values, sums);
  unroll<kLanes>(
      [&](auto lane) { total = fma(to_f32(load_multipliers(bits, tiles[lane], group_size)), sums[lane], total); });
}

// One token, one block after the other: memory is read in one stream.
template <typename Bits>
void multiply_in_turn(Bits bits, const TileBlocks& w, const float* values, float* y) {
  constexpr int kLanes = 4;
  const int64_t bytes = tile_bytes(bits, w.group_size);
  for (int s = 0; s < w.count; ++s) {
    F32x16 total = splat(0.0f);
    int64_t g = 0;
    for (; g + kLanes <= w.groups; g += kLanes) {
      add_consecutive<kLanes>(bits, w.blocks[s] + g * bytes, w.group_size, values + g * w.group_size, total);
    }
    for (; g < w.groups; ++g)
      add_consecutive<1>(bits, w.blocks[s] + g * bytes, w.group_size, values + g * w.group_size, total);
    store_f32(y + 16 * s, load_f32(w.row_scales(s)) * total);
  }
}

void multiply_one(const TileBlocks& w, const FloatBlock* x, int64_t, float* y, int64_t) {
  with_constant<FewWidths>(w.bits, [&](auto bits) { multiply_in_turn(bits, w, x->values, y); });
}

constexpr FloatProducts kOne = {multiply_one};

// Longer groups lie too far apart for the hardware to take four of them as one stream.
bool has_short_groups(const WeightKind& kind) { return takes_tiles(kind) && kind.group_size == kChunk; }
#endif

}  // namespace

MOTE_REGISTER_KERNEL(.name = "floats_" MOTE_ISA_NAME, .role = FloatProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .takes = takes_tiles, .functions = &kFloats);
#if defined(__AVX2__)
MOTE_REGISTER_KERNEL(.name = "floats_one_stream_1_" MOTE_ISA_NAME, .role = FloatProducts::kRole,
                     .needs = kNeeds | CpuFeature::kOneStream, .rank = kRank + 1, .max_tokens = 1,
                     .takes = has_short_groups, .functions = &kOne);
#endif

}  // namespace MOTE_ISA
}  // namespace mote
