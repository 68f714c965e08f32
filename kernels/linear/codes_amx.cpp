// int8 activations x tiles of 1 to 8 bits in AMX registers: 16 weight rows x 32 columns x 16 tokens an instruction.
#include <cstring>

#include "kernels/linear/codes.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kMinTokens = kTokenBlock + 1;  // up to a block, unpacking costs more than multiplying faster gains
// Columns that are multiplied before the next are unpacked: the panels and a chunk of activations fit the second cache.
constexpr int64_t kPanelColumns = 1024;
// A product is stored one group after it was begun and added up another group later, so that nothing waits for a result.
constexpr int kSumTiles = 2;
constexpr int kStoreAfter = 1;
constexpr int kAddAfter = 2;

// Signed codes. Scales of 0 before and after the groups make of what is added there nothing.
using TilePanel = Panel<kPanelColumns, kAddAfter, kSumTiles>;

struct Panels {
  TilePanel panels[kMaxStreams];
  int32_t totals[kSumTiles][16][16];  // [..][token][row]
};

size_t scratch_bytes(int64_t) { return sizeof(Panels); }

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

// Registers 0 and 1: sums [tokens][16 rows]; 2 and 3: activations [tokens][32]; 4 and 5: weights [8 quads][16 rows][4].
constexpr int kActivationTile = kSumTiles, kWeightTile = kSumTiles + 2;

void configure(int tokens) {
  TileConfig config;
  for (int i = 0; i < kWeightTile; ++i) {
    config.rows[i] = static_cast<uint8_t>(tokens);
    config.bytes_per_row[i] = i < kActivationTile ? 64 : kChunk;
  }
  for (int i = kWeightTile; i < kWeightTile + 2; ++i) {
    config.rows[i] = kQuads;
    config.bytes_per_row[i] = 64;
  }
  _tile_loadconfig(&config);
}

// The intrinsics with registers that may be constants of a template: compilers' own take literals only.
template <int kTile>
MOTE_INLINE void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
MOTE_INLINE void load_tile(const void* from, int64_t pitch) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(pitch) : "memory");
}
template <int kTile>
MOTE_INLINE void store_tile(void* to, int64_t pitch) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(pitch) : "memory");
}
template <int kTile, int kX, int kWeight>
MOTE_INLINE void add_product() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kTile), "i"(kX), "i"(kWeight));
}

// One group of a panel times a block of activations, into register kTile.
template <int kTile>
MOTE_INLINE void begin_group(const std::byte* quads, const int8_t* codes, int64_t chunks, int64_t pitch) {
  constexpr int kX = kActivationTile + kTile % 2, kWeight = kWeightTile + kTile % 2;
  clear_tile<kTile>();
  do {
    load_tile<kX>(codes, kChunk);
    load_tile<kWeight>(quads, 64);
    add_product<kTile, kX, kWeight>();
    codes += pitch;
    quads += 64 * kQuads;
  } while (--chunks > 0);
}

MOTE_INLINE void add_totals(const int32_t (*totals)[16], const float* scales, F32x16* sums) {
  const F32x16 scale = load_f32(scales);
  unroll<kTokenBlock>([&](auto t) { sums[t] = fma(scale, to_f32(load_i32(totals[t])), sums[t]); });
}

void multiply_panel(const TilePanel& panel, const TileBlocks& w, const Range& range, const CodeBlock& x, float* y, int64_t stride,
                    int32_t (*totals)[16][16]) {
  const int64_t count = x.count, groups = range.groups, chunks = w.group_size / kChunk;
  const int8_t* codes = x.codes + range.first_group * w.group_size * count;
  const std::byte* quads = panel.quads;
  const float* scales = panel.padded_scales;
  F32x16 sums[kTokenBlock];
  unroll<kTokenBlock>([&](auto t) { sums[t] = splat(0.0f); });
  if (!range.is_first) {
    unroll<kTokenBlock>([&](auto t) {
      if (t < count) sums[t] = load_f32(y + t * stride);
    });
  }
  for (int64_t first = 0; first < groups + kAddAfter; first += kSumTiles) {
    unroll<kSumTiles>([&](auto i) MOTE_INLINE_LAMBDA {
      if (first + i < groups) begin_group<i>(quads, codes, chunks, kChunk * count);
      codes += chunks * kChunk * count;
      quads += chunks * 64 * kQuads;
      constexpr int kStored = (i + kSumTiles - kStoreAfter) % kSumTiles, kAdded = (i + kSumTiles - kAddAfter) % kSumTiles;
      store_tile<kStored>(totals[kStored], 64);
      add_totals(totals[kAdded], scales, sums);
      scales += 16;
    });
  }
  const F32x16 weight_sums = load_f32(panel.weight_sums);
  unroll<kTokenBlock>([&](auto t) {
    if (t >= count) return;
    store_f32(y + t * stride, range.is_last ? finish_sums(x, t, sums[t], weight_sums) : sums[t]);
  });
}

void clear_padding(const Range& range, TilePanel& panel) {
  for (int i = 1; i <= kAddAfter; ++i) store_f32(panel.scales() - 16 * i, splat(0.0f));
  for (int i = 0; i < kSumTiles; ++i) store_f32(panel.scales() + 16 * (range.groups + i), splat(0.0f));
}

void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte* scratch) {
  Panels& panels = *reinterpret_cast<Panels*>(scratch);
  std::memset(panels.totals, 0, sizeof panels.totals);  // rows of tokens that a block lacks are never written
  int configured = 0;
  for_each_range(w, kPanelColumns, [&](const Range& range) {
    with_bits(w.bits, [&](auto bits) { unpack_panels<bits, true>(w, range, panels.panels); });
    for (int s = 0; s < w.count; ++s) clear_padding(range, panels.panels[s]);
    float* rows = y;
    for (int64_t b = 0; b < num_blocks; rows += x[b].count * stride, ++b) {
      if (x[b].count != configured) configure(configured = x[b].count);
      for (int s = 0; s < w.count; ++s) {
        multiply_panel(panels.panels[s], w, range, x[b], rows + 16 * s, stride, panels.totals);
      }
    }
  });
  if (configured != 0) _tile_release();
}

constexpr CodeProducts kTiles = {CodeLayout::kChunks, scratch_bytes, multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_tiles_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .min_tokens = kMinTokens, .takes = takes_tiles, .functions = &kTiles);

}  // namespace MOTE_ISA
}  // namespace mote
