// Float activations x tiles with float16 scales: codes become weights in registers. Only what unpacks codes is compiled
// for each of their widths.
#include "kernels/ops/linear/groups.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// Column i of a quad (16 rows x 4 columns) as weights.
template <int i>
MOTE_INLINE F32x16 weights_of(const I32x16& words, const I32x16& offset, const GroupNumbers& numbers) {
  if constexpr (kCodesAreSigned || kWideMatters) {
    return fma(numbers.scale, to_f32(shift_right<24>(shift_left<24 - 8 * i>(words)) - offset), numbers.low);
  }
  return fma(numbers.scale, to_f32((shift_right<8 * i>(words) & splat_i32(255)) - offset), numbers.low);
}

// What the codes have added for dot4.
int stored_offset(const TileBlocks& w) {
  if (w.scales.codebook != nullptr) return TileReader::codebook_offset(w);
  return kCodesAreSigned || (is_signed(8) && w.bits == 8) ? 0 : w.layout().code_offset();
}

// The weights of a chunk, [32 columns][16 rows].
MOTE_INLINE void unpack_weights(const TileReader& reader, const std::byte* tile, const std::byte* span, int64_t chunk,
                                int64_t group_size, const I32x16& offset, float* columns) {
  Bytes64 quads[kQuads];
  reader.unpack(reader.codes, tile, chunk, quads);
  for (int j = 0; j < kQuads; ++j) {
    const GroupNumbers numbers =
        reader.numbers(tile, span, reader.shared(span), group_size < kChunk ? 4 * j / group_size : 0);
    const I32x16 words = as_words(quads[j]);
    unroll<4>([&](auto i)
                  MOTE_INLINE_LAMBDA { store_f32(columns + 16 * (4 * j + i), weights_of<i>(words, offset, numbers)); });
  }
}

// y += the products of one chunk, for the kTokens rows that `values` and `y` begin with.
template <int kTokens>
MOTE_INLINE void add_chunk(const float* columns, const float* values, int64_t pitch, float* y, int64_t stride) {
  F32x16 sums[kTokens];
  for (int t = 0; t < kTokens; ++t) sums[t] = splat(0.0f);
  for (int64_t k = 0; k < kChunk; ++k) {
    const F32x16 column = load_f32(columns + 16 * k);
    for (int t = 0; t < kTokens; ++t) sums[t] = fma(column, splat(values[k * pitch + t]), sums[t]);
  }
  for (int t = 0; t < kTokens; ++t) store_f32(y + t * stride, load_f32(y + t * stride) + sums[t]);
}

void multiply_stream(const TileBlocks& w, const TileReader& reader, int s, const FloatBlock* x, int64_t num_blocks,
                     float* y, int64_t stride) {
  const I32x16 offset = splat_i32(stored_offset(w));
  float columns[16 * kChunk];
  reader.for_each_tile(w.blocks[s], 0, w.columns(), [&](const std::byte* tile, const std::byte* span, int64_t first) {
    for (int64_t chunk = 0; chunk < reader.tile_columns / kChunk; ++chunk) {
      unpack_weights(reader, tile, span, chunk, w.group_size, offset, columns);
      float* to = y;
      for (int64_t b = 0; b < num_blocks; to += x[b].count * stride, ++b) {
        const float* values = x[b].values + (first + chunk * kChunk) * x[b].count;
        int t = 0;
        for (; t + 4 <= x[b].count; t += 4) add_chunk<4>(columns, values + t, x[b].count, to + t * stride, stride);
        for (; t < x[b].count; ++t) add_chunk<1>(columns, values + t, x[b].count, to + t * stride, stride);
      }
    }
  });
}

// 32 columns of a tile, and the values that they are multiplied by.
struct Chunk {
  const std::byte* tile;
  const std::byte* span;
  int64_t index;  // in the tile
  const float* values;
};

// total += the products of each chunk, in their order. They are computed side by side, since every addition to a sum
// waits for the one before.
// kColumns: of a group, in the chunk
template <int kColumns, int kLanes>
MOTE_INLINE void add_chunks(const TileReader& reader, const Chunk* chunks, const I32x16& offset, F32x16& total) {
  Bytes64 quads[kLanes][kQuads];
  F32x16 sums[kLanes];
  unroll<kLanes>([&](auto lane) MOTE_INLINE_LAMBDA {
    reader.unpack(reader.codes, chunks[lane].tile, chunks[lane].index, quads[lane]);
    sums[lane] = splat(0.0f);
  });
  for (int group = 0; group < kChunk / kColumns; ++group) {
    GroupNumbers numbers[kLanes];
    unroll<kLanes>([&](auto lane) MOTE_INLINE_LAMBDA {
      numbers[lane] = reader.numbers(chunks[lane].tile, chunks[lane].span, reader.shared(chunks[lane].span), group);
    });
    for (int j = group * kColumns / 4; j < (group + 1) * kColumns / 4; ++j) {
      I32x16 words[kLanes];
      unroll<kLanes>([&](auto lane) MOTE_INLINE_LAMBDA { words[lane] = as_words(quads[lane][j]); });
      unroll<4>([&](auto i) MOTE_INLINE_LAMBDA {
        unroll<kLanes>([&](auto lane) MOTE_INLINE_LAMBDA {
          const F32x16 weights = weights_of<i>(words[lane], offset, numbers[lane]);
          sums[lane] = fma(weights, splat(chunks[lane].values[4 * j + i]), sums[lane]);
        });
      });
    }
  }
  unroll<kLanes>([&](auto lane) MOTE_INLINE_LAMBDA { total = total + sums[lane]; });
}

// One token: weights stay in registers.
template <int kColumns>
void multiply_one(const TileBlocks& w, const TileReader& reader, int s, const float* values, float* y) {
  constexpr int kLanes = 4;
  const I32x16 offset = splat_i32(stored_offset(w));
  F32x16 total = splat(0.0f);
  Chunk chunks[kLanes];
  int count = 0;
  reader.for_each_tile(w.blocks[s], 0, w.columns(), [&](const std::byte* tile, const std::byte* span, int64_t first) {
    for (int64_t chunk = 0; chunk < reader.tile_columns / kChunk; ++chunk) {
      chunks[count++] = {tile, span, chunk, values + first + chunk * kChunk};
      if (count < kLanes) continue;
      add_chunks<kColumns, kLanes>(reader, chunks, offset, total);
      count = 0;
    }
  });
  for (int i = 0; i < count; ++i) add_chunks<kColumns, 1>(reader, chunks + i, offset, total);
  store_f32(y, total);
}

void multiply(const TileBlocks& w, const FloatBlock* x, int64_t num_blocks, float* y, int64_t stride) {
  const TileReader reader(w);
  const bool is_one = num_blocks == 1 && x->count == 1;
  for (int s = 0; s < w.count; ++s) {
    int64_t tokens = 0;
    for (int64_t b = 0; b < num_blocks; ++b) tokens += x[b].count;
    float* to = y + 16 * s;
    for (int64_t t = 0; t < tokens; ++t) store_f32(to + t * stride, splat(0.0f));
    if (!is_one)
      multiply_stream(w, reader, s, x, num_blocks, to, stride);
    else if (w.group_size < kChunk)
      multiply_one<kChunk / 2>(w, reader, s, x->values, to);
    else
      multiply_one<kChunk>(w, reader, s, x->values, to);
    if (!w.scales.of_rows) continue;
    for (int64_t t = 0; t < tokens; ++t)
      store_f32(to + t * stride, row_scale(w, reader, s) * load_f32(to + t * stride));
  }
}

constexpr FloatProducts kFloats = {multiply};

bool takes_float16_scales(const WeightKind& kind) { return has_products_of(kind.bits) && kind.scales.columns != 0; }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "groups_floats_" MOTE_ISA_NAME, .role = FloatProducts::kRole, .needs = kNeeds,
                     .rank = kRank, .takes = takes_float16_scales, .functions = &kFloats);

}  // namespace MOTE_ISA
}  // namespace mote
