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
        totals[t] = dot4_at<kBits == 8>(totals[t], quads[j], row + 4 * (j * kTokens + t));
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

// Columns that are multiplied before the next are unpacked: a panel and a block of activations then fit the first cache, and
// all panels and activations of a chunk of tokens the second. A multiple of every group size.
constexpr int64_t kPanelColumns = 1024;

// 16 rows x kPanelColumns, unpacked: codes in quads, scales as floats.
struct Panel {
  std::byte quads[16 * kPanelColumns];             // [columns / 4][64]
  float scales[16 * kPanelColumns / kChunk];       // [groups][16]
};

struct Panels {
  Panel panels[kMaxStreams];
  float weight_sums[kMaxStreams][16];
};

// Columns [first_group * group_size, ...) of the product.
struct Range {
  int64_t first_group;
  int64_t groups;
  bool is_first;
  bool is_last;
};

size_t panel_bytes(int64_t) { return sizeof(Panels); }

size_t no_scratch(int64_t) { return 0; }

template <int kBits>
void unpack_panel(const TileBlocks& w, int stream, const Range& range, Panel& panel, float* weight_sums) {
  const int64_t bytes = tile_bytes(kBits, w.group_size);
  const std::byte* tile = w.blocks[stream] + range.first_group * bytes;
  std::byte* to = panel.quads;
  F32x16 sums = range.is_first ? splat(0.0f) : load_f32(weight_sums);
  for (int64_t g = 0; g < range.groups; ++g, tile += bytes) {
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
    sums = fma(scale, code_sums<kBits>(codes_alone, w.group_size), sums);
  }
  store_f32(weight_sums, sums);
}

// The panel times kTokens rows of a block of activations, from row `first` on. y holds the sums of the columns before.
template <bool kWide, int kTokens, int kGroup>
void multiply_panel(const Panel& panel, const float* weight_sums, const TileBlocks& w, const Range& range, const CodeBlock& x,
                    int first, float* y, int64_t stride) {
  F32x16 sums[kTokens];
  for (int t = 0; t < kTokens; ++t) sums[t] = range.is_first ? splat(0.0f) : load_f32(y + t * stride);
  const int64_t group_size = group_of<kGroup>(w), count = kTokens == kTokenBlock ? kTokenBlock : x.count;
  const std::byte* quads = panel.quads;
  const int8_t* row = x.codes + (range.first_group * group_size) * count + 4 * first;
  const int32_t* offsets = x.offsets + range.first_group * count + first;
  for (int64_t g = 0; g < range.groups; ++g, offsets += count) {
    const F32x16 scale = load_f32(panel.scales + 16 * g);
    if constexpr (kGroup == kChunk) {
      Bytes64 codes[kQuads];
      unroll<kQuads>([&](auto j) { codes[j] = load_bytes(quads + 64 * j); });
      unroll<kTokens>([&](auto t) {
        I32x16 total = first_sums(offsets + t);
        unroll<kQuads>([&](auto j) { total = dot4_at<kWide>(total, codes[j], row + 4 * (j * count + t)); });
        sums[t] = fma(scale, to_f32(total), sums[t]);
      });
      quads += 64 * kQuads;
      row += kChunk * count;
    } else {
      I32x16 totals[kTokens];
      for (int t = 0; t < kTokens; ++t) totals[t] = first_sums(offsets + t);
      for (int64_t quad = 0; quad < group_size / 4; ++quad, quads += 64, row += 4 * count) {
        const Bytes64 codes = load_bytes(quads);
        for (int t = 0; t < kTokens; ++t) totals[t] = dot4_at<kWide>(totals[t], codes, row + 4 * t);
      }
      for (int t = 0; t < kTokens; ++t) sums[t] = fma(scale, to_f32(totals[t]), sums[t]);
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    if (range.is_last) finish_token(x, first + t, sums[t], load_f32(weight_sums), y + t * stride);
    else store_f32(y + t * stride, sums[t]);
  }
}

template <bool kWide>
void multiply_block(const Panel& panel, const float* weight_sums, const TileBlocks& w, const Range& range, const CodeBlock& x,
                    float* y, int64_t stride) {
  for (int first = 0; first < x.count; first += kTokensAtOnce) {
    const int count = x.count - first < kTokensAtOnce ? x.count - first : kTokensAtOnce;
    float* to = y + first * stride;
    unroll<kTokensAtOnce>([&](auto index) {
      if (count != index + 1) return;
      // Only full blocks of the usual format are worth code of their own.
      if (index + 1 == kTokensAtOnce && w.group_size == kChunk) {
        multiply_panel<kWide, kTokensAtOnce, kChunk>(panel, weight_sums, w, range, x, first, to, stride);
      } else {
        multiply_panel<kWide, index + 1, 0>(panel, weight_sums, w, range, x, first, to, stride);
      }
    });
  }
}

void multiply_range(const TileBlocks& w, const Range& range, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride,
                    Panels& panels) {
  for (int s = 0; s < w.count; ++s) {
    with_bits(w.bits, [&](auto bits) { unpack_panel<bits>(w, s, range, panels.panels[s], panels.weight_sums[s]); });
  }
  for (int64_t b = 0; b < num_blocks; y += x[b].count * stride, ++b) {
    for (int s = 0; s < w.count; ++s) {
      const Panel& panel = panels.panels[s];
      float* to = y + 16 * s;
      if (kWideMatters && w.bits == 8) multiply_block<kWideMatters>(panel, panels.weight_sums[s], w, range, x[b], to, stride);
      else multiply_block<false>(panel, panels.weight_sums[s], w, range, x[b], to, stride);
    }
  }
}

void multiply_many(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte* scratch) {
  Panels& panels = *reinterpret_cast<Panels*>(scratch);
  const int64_t groups_at_once = kPanelColumns / w.group_size;
  for (int64_t g = 0; g < w.groups; g += groups_at_once) {
    const int64_t groups = w.groups - g < groups_at_once ? w.groups - g : groups_at_once;
    multiply_range(w, {g, groups, g == 0, g + groups == w.groups}, x, num_blocks, y, stride, panels);
  }
}

constexpr CodeProducts kOne = {CodeLayout::kQuads, no_scratch, multiply_one};
constexpr CodeProducts kSome = {CodeLayout::kQuads, no_scratch, multiply_some};
constexpr CodeProducts kMany = {CodeLayout::kQuads, panel_bytes, multiply_many};

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
