// int8 activations x tiles of 1 to 8 bits in AMX registers: 16 weight rows x 32 columns x 16 tokens an instruction.
#include "kernels/kernel.h"
#include "kernels/linear/kernels.h"
#include "kernels/simd/int8.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kMinTokens = 8;  // fewer leave most of a register empty
// Columns that are multiplied before the next are unpacked: the panels and a chunk of activations fit the second cache.
constexpr int64_t kPanelColumns = 1024;

// 16 rows x kPanelColumns: signed codes in quads, scales as floats.
struct Panel {
  std::byte quads[16 * kPanelColumns];         // [columns / 4][16][4]
  float scales[16 * kPanelColumns / kChunk];   // [groups][16]
  float weight_sums[16];
};

struct Panels {
  Panel panels[kMaxStreams];
  int32_t totals[2][16][16];  // [token][row]
};

// Columns [first_group * group_size, ...) of the product.
struct Range {
  int64_t first_group;
  int64_t groups;
  bool is_first;
  bool is_last;
};

size_t scratch_bytes(int64_t) { return sizeof(Panels); }

template <int kBits>
void unpack_panel(const TileBlocks& w, int stream, const Range& range, Panel& panel) {
  const int64_t bytes = tile_bytes(kBits, w.group_size);
  const std::byte* tile = w.blocks[stream] + range.first_group * bytes;
  std::byte* to = panel.quads;
  F32x16 sums = range.is_first ? splat(0.0f) : load_f32(panel.weight_sums);
  for (int64_t g = 0; g < range.groups; ++g, tile += bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + 1024 + i);
    I32x16 codes_alone = splat_i32(0);
    for (int64_t chunk = 0; chunk < w.group_size / kChunk; ++chunk, to += 64 * kQuads) {
      Bytes64 quads[kQuads];
      unpack_chunk<kBits>(tile, w.group_size, chunk, quads);
      unroll<kQuads>([&](auto j) {
        codes_alone = dot4<false>(codes_alone, quads[j], kOnes);
        store_bytes(to + 64 * j, subtract(quads[j], code_offset(kBits)));
      });
    }
    const F32x16 scale = load_f16(tile + code_bytes(kBits, w.group_size));
    store_f32(panel.scales + 16 * g, scale);
    sums = fma(scale, to_f32(codes_alone - splat_i32(static_cast<int32_t>(code_offset(kBits) * w.group_size))), sums);
  }
  store_f32(panel.weight_sums, sums);
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

// Registers 0: sums [tokens][16 rows]; 1: activations [tokens][32]; 2: weights [8 quads][16 rows][4].
void configure(int tokens) {
  TileConfig config;
  config.rows[0] = config.rows[1] = static_cast<uint8_t>(tokens);
  config.rows[2] = kQuads;
  config.bytes_per_row[0] = config.bytes_per_row[2] = 64;
  config.bytes_per_row[1] = kChunk;
  _tile_loadconfig(&config);
}

// totals[token][row] of one group.
MOTE_INLINE void multiply_group(const std::byte* quads, const int8_t* codes, int64_t chunks, int tokens, int32_t (*totals)[16]) {
  _tile_zero(0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    _tile_loadd(1, codes + chunk * kChunk * tokens, kChunk);
    _tile_loadd(2, quads + chunk * 64 * kQuads, 64);
    _tile_dpbssd(0, 1, 2);
  }
  _tile_stored(0, totals, 64);
}

MOTE_INLINE void add_totals(const int32_t (*totals)[16], const float* scales, F32x16* sums) {
  const F32x16 scale = load_f32(scales);
  unroll<kTokenBlock>([&](auto t) { sums[t] = fma(scale, to_f32(load_i32(totals[t])), sums[t]); });
}

void multiply_panel(const Panel& panel, const TileBlocks& w, const Range& range, const CodeBlock& x, float* y, int64_t stride,
                    int32_t (*totals)[16][16]) {
  F32x16 sums[kTokenBlock];
  unroll<kTokenBlock>([&](auto t) {
    sums[t] = range.is_first || t >= x.count ? splat(0.0f) : load_f32(y + t * stride);
  });
  const int64_t chunks = w.group_size / kChunk, pitch = w.group_size * x.count;
  const int8_t* codes = x.codes + range.first_group * pitch;
  const std::byte* quads = panel.quads;
  for (int64_t g = 0; g < range.groups; ++g, codes += pitch, quads += 16 * w.group_size) {
    multiply_group(quads, codes, chunks, x.count, totals[g % 2]);
    // One group behind, so that adding up and multiplying overlap.
    if (g > 0) add_totals(totals[(g - 1) % 2], panel.scales + 16 * (g - 1), sums);
  }
  add_totals(totals[(range.groups - 1) % 2], panel.scales + 16 * (range.groups - 1), sums);
  const F32x16 weight_sums = load_f32(panel.weight_sums);
  unroll<kTokenBlock>([&](auto t) {
    if (t >= x.count) return;
    F32x16 sum = sums[t];
    if (range.is_last) sum = splat(x.scales[t]) * fnma(splat(x.zeros[t]), weight_sums, sum);
    store_f32(y + t * stride, sum);
  });
}

void unpack(const TileBlocks& w, const Range& range, Panels& panels) {
  for (int s = 0; s < w.count; ++s) {
    unroll<8>([&](auto index) {
      if (w.bits == index + 1) unpack_panel<index + 1>(w, s, range, panels.panels[s]);
    });
  }
}

void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte* scratch) {
  Panels& panels = *reinterpret_cast<Panels*>(scratch);
  const int64_t groups_at_once = kPanelColumns / w.group_size;
  std::memset(panels.totals, 0, sizeof panels.totals);  // rows of tokens that a block lacks are never written
  int configured = 0;
  for (int64_t g = 0; g < w.groups; g += groups_at_once) {
    const int64_t groups = w.groups - g < groups_at_once ? w.groups - g : groups_at_once;
    const Range range = {g, groups, g == 0, g + groups == w.groups};
    unpack(w, range, panels);
    float* rows = y;
    for (int64_t b = 0; b < num_blocks; rows += x[b].count * stride, ++b) {
      if (x[b].count != configured) configure(configured = x[b].count);
      for (int s = 0; s < w.count; ++s) multiply_panel(panels.panels[s], w, range, x[b], rows + 16 * s, stride, panels.totals);
    }
  }
  if (configured != 0) _tile_release();
}

constexpr CodeProducts kTiles = {CodeLayout::kChunks, scratch_bytes, multiply};

bool takes_tiles(const WeightKind& kind) { return is_weight_bits(kind.bits); }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_tiles_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .min_tokens = kMinTokens, .takes = takes_tiles, .functions = &kTiles);

}  // namespace MOTE_ISA
}  // namespace mote
