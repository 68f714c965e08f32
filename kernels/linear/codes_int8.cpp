// int8 activations x tiles of 1 to 8 bits: a product for few tokens that reads four streams of weights at once and unpacks
// in registers, and one for many that unpacks a block of rows once for all of them.
#include <utility>

#include "kernels/kernel.h"
#include "kernels/linear/kernels.h"
#include "kernels/simd/int8.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kMaxStreamTokens = 4;
// A mapped file arrives in pages of 4 KiB, where the hardware stops fetching ahead.
constexpr int64_t kFetchAhead = 1024;

MOTE_INLINE I32x16 first_sums(const int32_t* offset) { return splat_i32(kCodesAreSigned ? 0 : *offset); }

// Groups of 32 are what models are stored in, and short enough to be unrolled: kGroup is 32, or 0 for any other size.
template <int kGroup>
MOTE_INLINE int64_t group_of(const TileBlocks& w) {
  return kGroup == 0 ? w.group_size : kGroup;
}

MOTE_INLINE int32_t load_quad(const int8_t* codes) {
  int32_t quad;
  std::memcpy(&quad, codes, sizeof(quad));
  return quad;
}

// The sum of a row's codes, whatever kCodesAreSigned says.
template <int kBits>
MOTE_INLINE F32x16 code_sums(const I32x16& sums, int64_t group_size) {
  return to_f32(kCodesAreSigned ? sums : sums - splat_i32(static_cast<int32_t>(code_offset(kBits) * group_size)));
}

template <int kBits, int kGroup>
MOTE_INLINE void fetch(const std::byte* tile, int64_t bytes) {
  if constexpr (kGroup == 0) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + kFetchAhead + i);
  } else {
    unroll<static_cast<int>((tile_bytes(kBits, kGroup) + 63) / 64)>([&](auto i) {
      __builtin_prefetch(tile + kFetchAhead + 64 * i);
    });
  }
}

// One group of one stream: adds to sums[t] and to weight_sums.
template <int kBits, int kTokens>
MOTE_INLINE void add_tile(const std::byte* tile, int64_t group_size, const CodeBlock& x, int64_t group, F32x16* sums,
                          F32x16& weight_sums) {
  I32x16 totals[kTokens], codes_alone = splat_i32(0);
  for (int t = 0; t < kTokens; ++t) totals[t] = first_sums(x.offsets + group * kTokens + t);
  const int8_t* row = x.codes + group * group_size * kTokens;
  for (int64_t chunk = 0; chunk < group_size / kChunk; ++chunk, row += kChunk * kTokens) {
    Bytes64 quads[kQuads];
    unpack_chunk<kBits>(tile, group_size, chunk, quads);
    unroll<kQuads>([&](auto j) {
      codes_alone = dot4<kBits == 8>(codes_alone, quads[j], kOnes);
      for (int t = 0; t < kTokens; ++t) {
        totals[t] = dot4<kBits == 8>(totals[t], quads[j], load_quad(row + 4 * (j * kTokens + t)));
      }
    });
  }
  const F32x16 scale = load_f16(tile + code_bytes(kBits, group_size));
  weight_sums = fma(scale, code_sums<kBits>(codes_alone, group_size), weight_sums);
  for (int t = 0; t < kTokens; ++t) sums[t] = fma(scale, to_f32(totals[t]), sums[t]);
}

MOTE_INLINE void finish_token(const CodeBlock& x, int t, const F32x16& sum, const F32x16& weight_sums, float* y) {
  store_f32(y, splat(x.scales[t]) * fnma(splat(x.zeros[t]), weight_sums, sum));
}

template <int kBits, int kTokens, int kGroup>
void stream_blocks(const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  F32x16 sums[kMaxStreams][kTokens], weight_sums[kMaxStreams];
  const std::byte* tiles[kMaxStreams];
  for (int s = 0; s < kMaxStreams; ++s) {
    tiles[s] = w.blocks[s < w.count ? s : 0];  // a stream that is missing repeats the first, from cache, for nobody
    weight_sums[s] = splat(0.0f);
    for (int t = 0; t < kTokens; ++t) sums[s][t] = splat(0.0f);
  }
  const int64_t group_size = group_of<kGroup>(w), bytes = tile_bytes(kBits, group_size);
  for (int64_t g = 0; g < w.groups; ++g) {
    unroll<kMaxStreams>([&](auto s) {
      fetch<kBits, kGroup>(tiles[s], bytes);
      add_tile<kBits, kTokens>(tiles[s], group_size, x, g, sums[s], weight_sums[s]);
      tiles[s] += bytes;
    });
  }
  for (int s = 0; s < w.count; ++s) {
    for (int t = 0; t < kTokens; ++t) finish_token(x, t, sums[s][t], weight_sums[s], y + t * stride + 16 * s);
  }
}

// Calls function(constant) for the constant `bits`.
template <typename Function>
MOTE_INLINE void with_bits(int bits, const Function& function) {
  unroll<8>([&](auto index) {
    if (bits == index + 1) function(std::integral_constant<int, index + 1>());
  });
}

void multiply_one(const TileBlocks& w, const CodeBlock* x, int64_t, float* y, int64_t stride, std::byte*) {
  with_bits(w.bits, [&](auto bits) { stream_blocks<bits, 1, 0>(w, *x, y, stride); });
}

// The formats that models are stored in; what the others would gain is not worth their code.
bool is_common(const WeightKind& kind) { return (kind.bits == 4 || kind.bits == 8) && kind.group_size == 32; }

template <int kTokens>
void multiply_few(const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  if (w.bits == 4) stream_blocks<4, kTokens, 32>(w, x, y, stride);
  else stream_blocks<8, kTokens, 32>(w, x, y, stride);
}

void multiply_some(const TileBlocks& w, const CodeBlock* x, int64_t, float* y, int64_t stride, std::byte*) {
  switch (x->count) {
    case 1: return multiply_few<1>(w, *x, y, stride);
    case 2: return multiply_few<2>(w, *x, y, stride);
    case 3: return multiply_few<3>(w, *x, y, stride);
    default: return multiply_few<4>(w, *x, y, stride);
  }
}

// A block of 16 rows, unpacked: codes in quads, scales and sums as floats.
struct Panel {
  std::byte* quads;      // [columns / 4][64]
  float* scales;         // [groups][16]
  float weight_sums[16];
};

size_t panel_bytes(int64_t columns) { return static_cast<size_t>(16 * columns + 64 * (columns / 32)); }

size_t no_scratch(int64_t) { return 0; }

template <int kBits>
void unpack_block(const TileBlocks& w, int block, Panel& panel) {
  const int64_t bytes = tile_bytes(kBits, w.group_size);
  const std::byte* tile = w.blocks[block];
  std::byte* to = panel.quads;
  F32x16 weight_sums = splat(0.0f);
  for (int64_t g = 0; g < w.groups; ++g, tile += bytes) {
    fetch<kBits, 0>(tile, bytes);
    I32x16 codes_alone = splat_i32(0);
    for (int64_t chunk = 0; chunk < w.group_size / kChunk; ++chunk, to += 64 * kQuads) {
      Bytes64 quads[kQuads];
      unpack_chunk<kBits>(tile, w.group_size, chunk, quads);
      unroll<kQuads>([&](auto j) {
        codes_alone = dot4<kBits == 8>(codes_alone, quads[j], kOnes);
        store_bytes(to + 64 * j, quads[j]);
      });
    }
    const F32x16 scale = load_f16(tile + code_bytes(kBits, w.group_size));
    store_f32(panel.scales + 16 * g, scale);
    weight_sums = fma(scale, code_sums<kBits>(codes_alone, w.group_size), weight_sums);
  }
  store_f32(panel.weight_sums, weight_sums);
}

// The panel times kTokens rows of a block of activations, from row `first` on.
template <bool kWide, int kTokens, int kGroup>
void multiply_panel(const Panel& panel, const TileBlocks& w, const CodeBlock& x, int first, float* y, int64_t stride) {
  F32x16 sums[kTokens];
  for (int t = 0; t < kTokens; ++t) sums[t] = splat(0.0f);
  const int64_t pitch = 4 * (kTokens == kTokenBlock ? kTokenBlock : x.count);  // bytes from quad to quad
  const std::byte* quads = panel.quads;
  const int8_t* row = x.codes + 4 * first;
  const int32_t* offsets = x.offsets + first;
  const int64_t chunks = group_of<kGroup>(w) / kChunk;
  for (int64_t g = 0; g < w.groups; ++g, offsets += x.count) {
    I32x16 totals[kTokens];
    for (int t = 0; t < kTokens; ++t) totals[t] = first_sums(offsets + t);
    for (int64_t chunk = 0; chunk < chunks; ++chunk, quads += 64 * kQuads, row += kQuads * pitch) {
      Bytes64 codes[kQuads];
      unroll<kQuads>([&](auto j) { codes[j] = load_bytes(quads + 64 * j); });
      unroll<kTokens>([&](auto t) {
        unroll<kQuads>([&](auto j) { totals[t] = dot4<kWide>(totals[t], codes[j], load_quad(row + j * pitch + 4 * t)); });
      });
    }
    const F32x16 scale = load_f32(panel.scales + 16 * g);
    unroll<kTokens>([&](auto t) { sums[t] = fma(scale, to_f32(totals[t]), sums[t]); });
  }
  const F32x16 weight_sums = load_f32(panel.weight_sums);
  for (int t = 0; t < kTokens; ++t) finish_token(x, first + t, sums[t], weight_sums, y + t * stride);
}

template <bool kWide>
void multiply_block(const Panel& panel, const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  for (int first = 0; first < x.count; first += kTokensAtOnce) {
    const int count = x.count - first < kTokensAtOnce ? x.count - first : kTokensAtOnce;
    unroll<kTokensAtOnce>([&](auto index) {
      if (count != index + 1) return;
      // Only full blocks of the usual format are worth code of their own.
      if (index + 1 == kTokensAtOnce && w.group_size == 32) {
        multiply_panel<kWide, kTokensAtOnce, 32>(panel, w, x, first, y + first * stride, stride);
      } else {
        multiply_panel<kWide, index + 1, 0>(panel, w, x, first, y + first * stride, stride);
      }
    });
  }
}

void multiply_many(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte* scratch) {
  Panel panel;
  panel.quads = scratch;
  panel.scales = reinterpret_cast<float*>(scratch + 16 * w.columns());
  for (int s = 0; s < w.count; ++s) {
    with_bits(w.bits, [&](auto bits) { unpack_block<bits>(w, s, panel); });
    float* to = y + 16 * s;
    for (int64_t b = 0; b < num_blocks; to += x[b].count * stride, ++b) {
      if (kWideMatters && w.bits == 8) multiply_block<kWideMatters>(panel, w, x[b], to, stride);
      else multiply_block<false>(panel, w, x[b], to, stride);
    }
  }
}

constexpr CodeProducts kOne = {no_scratch, multiply_one};
constexpr CodeProducts kSome = {no_scratch, multiply_some};
constexpr CodeProducts kMany = {panel_bytes, multiply_many};

bool takes_tiles(const WeightKind& kind) { return is_weight_bits(kind.bits); }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_stream_1_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank + 1,
                     .max_tokens = 1, .takes = takes_tiles, .functions = &kOne);
MOTE_REGISTER_KERNEL(.name = "codes_stream_4_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank + 2,
                     .max_tokens = kMaxStreamTokens, .takes = is_common, .functions = &kSome);
MOTE_REGISTER_KERNEL(.name = "codes_panels_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .takes = takes_tiles, .functions = &kMany);

}  // namespace MOTE_ISA
}  // namespace mote
