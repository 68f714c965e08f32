// int8 activations x tiles of 1 to 7 bits for many tokens, on CPUs that add products of bytes in pairs of 16 bits: a
// block of rows is unpacked once for all tokens, as codes_panels.cpp does it. Codes are the signed bytes and
// activations the unsigned ones, so that no group has an offset, and a group's multipliers are what widens its sums.
#include <cstring>

#include "kernels/ops/linear/panels.h"

#if defined(MOTE_HAS_DOT_PAIRS)

namespace mote {
inline namespace MOTE_ISA {
namespace {

// 16 rows of a range, unpacked.
struct RowPanel {
  std::byte quads[16 * kPanelColumns];                 // [columns / 4][64], signed codes
  std::byte multipliers[64 * kPanelColumns / kChunk];  // [columns / kChunk][16 rows][2], each twice in 16 bits
  int32_t weight_sums[16];                             // over all ranges
};

size_t scratch_bytes(int64_t) { return kMaxStreams * sizeof(RowPanel); }

template <typename Bits>
MOTE_INLINE void unpack_to(Bits bits, const std::byte* tile, int64_t group_size, int64_t column, RowPanel& panel) {
  const I32x16 multipliers = load_multipliers(bits, tile, group_size);
  std::byte* quads = panel.quads + 16 * column;
  unpack_tile(bits, tile, group_size, multipliers, panel.weight_sums,
              [&](int64_t j, const Bytes64& codes)
                  MOTE_INLINE_LAMBDA { store_bytes(quads + 64 * j, subtract(codes, code_offset(bits))); });
  const Bytes64 twice = as_bytes((multipliers & splat_i32(0xffff)) * splat_i32(0x00010001));
  for (int64_t chunk = column / kChunk; chunk < (column + group_size) / kChunk; ++chunk)
    store_bytes(panel.multipliers + 64 * chunk, twice);
}

// Adds the products of `chunks` chunks of a panel with a run of kRows tokens to y. kBits: the most that a code has
template <int kBits, int kRows>
void add_run(const RowPanel& panel, const int8_t* codes, int64_t chunks, float* y, int64_t stride) {
  // Quads whose pairs of products add up within 16 bits: 2^(bits - 1) * 255 * 2 * kTogether < 2^15.
  constexpr int kTogether = kBits <= 4 ? 8 : kBits == 5 ? 4 : kBits == 6 ? 2 : 1;
  I32x16 sums[kRows];
  unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA { sums[t] = load_i32(y + t * stride); });
  const std::byte* quads = panel.quads;
  for (int64_t chunk = 0; chunk < chunks; ++chunk, quads += 64 * kQuads, codes += kChunk * kRows) {
    Bytes64 pairs[kRows];
    unroll<kQuads>([&](auto j) MOTE_INLINE_LAMBDA {
      const Bytes64 weights = load_bytes(quads + 64 * j);
      unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
        int32_t bytes;
        std::memcpy(&bytes, codes + 4 * (j * kRows + t), sizeof(bytes));
        const Bytes64 products = dot_pairs_unsigned(weights, bytes);
        pairs[t] = j % kTogether == 0 ? products : add_pairs(pairs[t], products);
        hide(pairs[t]);  // else gcc adds in another order, for which it keeps all products
        if constexpr (j % kTogether == kTogether - 1)
          sums[t] = add_multiplied(sums[t], pairs[t], load_bytes(panel.multipliers + 64 * chunk));
      });
    });
  }
  unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA { store_i32(y + t * stride, sums[t]); });
}

void multiply_block(const TileBlocks& w, const RowPanel* panels, const Range& range, const CodeBlock& x, float* y,
                    int64_t stride) {
  if (range.is_first) start_rows(x, w.count, 0, y, stride);
  const int64_t first_column = range.first_group * w.group_size, chunks = range.groups * w.group_size / kChunk;
  with_most_bits(w.bits, [&](auto bits) MOTE_INLINE_LAMBDA {
    for (int s = 0; s < w.count; ++s) {
      for_each_run(x.count, 0, [&](int first, auto rows) MOTE_INLINE_LAMBDA {
        const int8_t* codes = x.codes + first * w.columns() + first_column * rows;
        if constexpr (bits < 8) add_run<bits, rows>(panels[s], codes, chunks, y + first * stride + 16 * s, stride);
      });
    }
  });
  if (range.is_last) finish_rows(w, x, [&](int s) { return panels[s].weight_sums; }, y, stride);
}

void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride,
              std::byte* scratch) {
  multiply_panels<RowPanel>(
      w, x, num_blocks, y, stride, scratch,
      [&](auto bits, RowPanel& panel, int64_t group, const std::byte* tile) {
        if (bits < 8) unpack_to(bits, tile, w.group_size, group * w.group_size, panel);
      },
      [&](const RowPanel* panels, const Range& range, const CodeBlock& block, float* rows) {
        multiply_block(w, panels, range, block, rows, stride);
      });
}

bool takes_narrow_tiles(const WeightKind& kind) { return takes_tiles(kind) && kind.bits < 8; }

constexpr CodeProducts kPairs = {CodeLayout::kUnsignedQuads, scratch_bytes, multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_pairs_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .takes = takes_narrow_tiles, .functions = &kPairs);

}  // namespace MOTE_ISA
}  // namespace mote

#endif
