// Float activations x tiles of 1 to 8 bits: codes become floats in registers.
#include "kernels/linear/tiles.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// Columns of a chunk as floats, [32][16].
template <int kBits>
MOTE_INLINE void unpack_floats(const std::byte* tile, int64_t group_size, int64_t chunk, float* columns) {
  Bytes64 quads[kQuads];
  unpack_chunk<kBits>(tile, group_size, chunk, quads);
  const I32x16 mask = splat_i32(255), offset = splat_i32(kCodesAreSigned ? 0 : code_offset(kBits));
  for (int j = 0; j < kQuads; ++j) {
    std::byte bytes[64];
    store_bytes(bytes, quads[j]);
    const I32x16 words = load_i32(bytes);
    unroll<4>([&](auto i) {
      I32x16 codes = shift_left<24 - 8 * i>(words);
      codes = kCodesAreSigned ? shift_right<24>(codes) : (shift_right<24>(codes) & mask) - offset;
      store_f32(columns + 16 * (4 * j + i), to_f32(codes));
    });
  }
}

// kTokens rows from row `first` of the block on: sums += multiplier * the products of one group.
template <int kTokens>
MOTE_INLINE void add_group(const float* columns, int64_t group_size, const F32x16& multiplier, const float* values, int64_t pitch,
                           float* y, int64_t stride) {
  F32x16 sums[kTokens];
  for (int t = 0; t < kTokens; ++t) sums[t] = splat(0.0f);
  for (int64_t k = 0; k < group_size; ++k) {
    const F32x16 column = load_f32(columns + 16 * k);
    for (int t = 0; t < kTokens; ++t) sums[t] = fma(column, splat(values[k * pitch + t]), sums[t]);
  }
  for (int t = 0; t < kTokens; ++t) store_f32(y + t * stride, fma(multiplier, sums[t], load_f32(y + t * stride)));
}

MOTE_INLINE void add_block(const float* columns, int64_t group_size, const F32x16& multiplier, const FloatBlock& x, int64_t group,
                           float* y, int64_t stride) {
  const float* values = x.values + group * group_size * x.count;
  int t = 0;
  for (; t + 4 <= x.count; t += 4) add_group<4>(columns, group_size, multiplier, values + t, x.count, y + t * stride, stride);
  for (; t < x.count; ++t) add_group<1>(columns, group_size, multiplier, values + t, x.count, y + t * stride, stride);
}

template <int kBits>
void multiply_bits(const TileBlocks& w, const FloatBlock* x, int64_t num_blocks, float* y, int64_t stride) {
  constexpr int64_t kMaxGroup = 256;
  float columns[16 * kMaxGroup];
  const int64_t bytes = tile_bytes(kBits, w.group_size);
  for (int s = 0; s < w.count; ++s) {
    const std::byte* tile = w.blocks[s];
    for (int64_t g = 0; g < w.groups; ++g, tile += bytes) {
      fetch(tile, bytes);
      for (int64_t chunk = 0; chunk < w.group_size / kChunk; ++chunk) {
        unpack_floats<kBits>(tile, w.group_size, chunk, columns + 16 * kChunk * chunk);
      }
      const F32x16 multiplier = to_f32(load_multipliers<kBits>(tile, w.group_size));
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
  for_each_sum(w, x, num_blocks, y, stride, [](int, const float*) { return splat(0.0f); });
  with_bits(w.bits, [&](auto bits) { multiply_bits<bits>(w, x, num_blocks, y, stride); });
  for_each_sum(w, x, num_blocks, y, stride, [&](int s, const float* sums) { return load_f32(w.scales(s)) * load_f32(sums); });
}

constexpr FloatProducts kFloats = {multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "floats_4x16_" MOTE_ISA_NAME, .role = FloatProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .takes = takes_tiles, .functions = &kFloats);

}  // namespace MOTE_ISA
}  // namespace mote
