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

// 16 rows x kPanelColumns: signed codes row by row within 32 columns, scales as floats.
struct Panel {
  int8_t codes[16 * kPanelColumns];            // [columns / 32][16][32]
  float scales[16 * kPanelColumns / kChunk];   // [groups][16]
  float weight_sums[16];
};

struct Panels {
  Panel panels[kMaxStreams];
  int32_t totals[2][16][16];  // [row][token]
};

// Columns [first_group * group_size, ...) of the product.
struct Range {
  int64_t first_group;
  int64_t groups;
  bool is_first;
  bool is_last;
};

size_t scratch_bytes(int64_t) { return sizeof(Panels); }

// Quads [8][16 rows][4] become rows [16][32].
MOTE_INLINE void store_rows(const Bytes64* quads, int8_t* to) {
  for (int j = 0; j < kQuads; ++j) {
    alignas(64) int32_t words[16];
    store_bytes(reinterpret_cast<std::byte*>(words), quads[j]);
    for (int r = 0; r < 16; ++r) std::memcpy(to + 32 * r + 4 * j, words + r, 4);
  }
}

template <int kBits>
void unpack_panel(const TileBlocks& w, int stream, const Range& range, Panel& panel) {
  const int64_t bytes = tile_bytes(kBits, w.group_size);
  const std::byte* tile = w.blocks[stream] + range.first_group * bytes;
  int8_t* to = panel.codes;
  F32x16 sums = range.is_first ? splat(0.0f) : load_f32(panel.weight_sums);
  for (int64_t g = 0; g < range.groups; ++g, tile += bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + 1024 + i);
    I32x16 codes_alone = splat_i32(0);
    for (int64_t chunk = 0; chunk < w.group_size / kChunk; ++chunk, to += 16 * kChunk) {
      Bytes64 quads[kQuads];
      unpack_chunk<kBits>(tile, w.group_size, chunk, quads);
      unroll<kQuads>([&](auto j) {
        codes_alone = dot4<false>(codes_alone, quads[j], kOnes);
        quads[j] = subtract(quads[j], code_offset(kBits));
      });
      store_rows(quads, to);
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

// Registers 0 and 1: sums [16 rows][tokens]; 2, 3: weights [16][32]; 4, 5: activations [8 quads][tokens][4].
void configure(int tokens) {
  TileConfig config;
  for (int i = 0; i < 6; ++i) {
    config.rows[i] = i < 4 ? 16 : 8;
    config.bytes_per_row[i] = static_cast<uint16_t>(i == 2 || i == 3 ? 32 : 4 * tokens);
  }
  _tile_loadconfig(&config);
}

// totals[row][token] of one group.
MOTE_INLINE void multiply_group(const int8_t* codes, const int8_t* row, int64_t chunks, int tokens, int32_t* totals) {
  _tile_zero(0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    _tile_loadd(2, codes + chunk * 16 * kChunk, 32);
    _tile_loadd(4, row + chunk * kChunk * tokens, 4 * tokens);
    _tile_dpbssd(0, 2, 4);
  }
  _tile_stored(0, totals, 64);
}

// Adds scale[r] * totals[r] to the sums of each row, [16 rows][16 tokens].
MOTE_INLINE void add_totals(const int32_t (*totals)[16], const float* scales, F32x16* sums) {
  unroll<16>([&](auto r) { sums[r] = fma(splat(scales[r]), to_f32(load_i32(totals[r])), sums[r]); });
}

// y[t][r] from sums [r][t] of the columns before, and back.
MOTE_INLINE void load_sums(const float* y, int64_t stride, int tokens, F32x16* sums) {
  alignas(64) float square[16][16] = {};
  for (int t = 0; t < tokens; ++t) {
    for (int r = 0; r < 16; ++r) square[r][t] = y[t * stride + r];
  }
  for (int r = 0; r < 16; ++r) sums[r] = load_f32(square[r]);
}

MOTE_INLINE void store_sums(const F32x16* sums, const Panel& panel, const CodeBlock& x, bool is_last, float* y, int64_t stride) {
  alignas(64) float square[16][16];
  for (int r = 0; r < 16; ++r) store_f32(square[r], sums[r]);
  for (int t = 0; t < x.count; ++t) {
    float row[16];
    for (int r = 0; r < 16; ++r) row[r] = square[r][t];
    F32x16 sum = load_f32(row);
    if (is_last) sum = splat(x.scales[t]) * fnma(splat(x.zeros[t]), load_f32(panel.weight_sums), sum);
    store_f32(y + t * stride, sum);
  }
}

void multiply_panel(const Panel& panel, const TileBlocks& w, const Range& range, const CodeBlock& x, float* y, int64_t stride,
                    int32_t (*totals)[16][16]) {
  F32x16 sums[16];
  if (range.is_first) {
    for (F32x16& sum : sums) sum = splat(0.0f);
  } else {
    load_sums(y, stride, x.count, sums);
  }
  const int64_t chunks = w.group_size / kChunk, pitch = w.group_size * x.count;
  const int8_t* row = x.codes + range.first_group * pitch;
  const int8_t* codes = panel.codes;
  for (int64_t g = 0; g < range.groups; ++g, row += pitch, codes += 16 * w.group_size) {
    multiply_group(codes, row, chunks, x.count, totals[g % 2][0]);
    // One group behind, so that adding up and multiplying overlap.
    if (g > 0) add_totals(totals[(g - 1) % 2], panel.scales + 16 * (g - 1), sums);
  }
  add_totals(totals[(range.groups - 1) % 2], panel.scales + 16 * (range.groups - 1), sums);
  store_sums(sums, panel, x, range.is_last, y, stride);
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

constexpr CodeProducts kTiles = {scratch_bytes, multiply};

bool takes_tiles(const WeightKind& kind) { return is_weight_bits(kind.bits); }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_tiles_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .min_tokens = kMinTokens, .takes = takes_tiles, .functions = &kTiles);

}  // namespace MOTE_ISA
}  // namespace mote
