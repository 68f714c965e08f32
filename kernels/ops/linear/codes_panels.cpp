// int8 activations x tiles of 1 to 8 bits for many tokens: a block of rows is unpacked once for all of them. CPUs that
// add products of bytes in pairs have codes_pairs_panels.cpp for less than 8 bits.
#include <cstring>
#include <numeric>

#include "kernels/ops/linear/panels.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// 16 rows of a range, unpacked: codes in groups that have multipliers, or products in one group for the whole range.
struct RowPanel {
  std::byte quads[16 * kPanelColumns];               // [columns / 4][64], or octets
  int32_t multipliers[16 * kPanelColumns / kChunk];  // [groups][16]
  int32_t weight_sums[16];                           // over all ranges
};

#if defined(MOTE_HAS_DOT_PAIRS)
constexpr bool takes(int bits) { return bits == 8; }
#else
constexpr bool takes(int) { return true; }
#endif

// Unsigned products exceed 127. Where dot4 is slow for such bytes, it takes codes, and multipliers follow.
constexpr bool takes_products(int bits) { return products_fit_bytes(bits) && !kWideMatters; }

template <typename Bits>
MOTE_INLINE void unpack_to(Bits bits, const std::byte* tile, int64_t group_size, std::byte* quads, int32_t* multipliers,
                           int32_t* weight_sums) {
  const I32x16 all = load_multipliers(bits, tile, group_size);
  const ByteProducts products(bits, all);
#if defined(MOTE_HAS_OCTETS)
  Bytes64 even;  // the quad before one of odd number
#endif
  unpack_tile(bits, tile, group_size, all, weight_sums, [&](int64_t j, const Bytes64& codes) MOTE_INLINE_LAMBDA {
#if defined(MOTE_HAS_OCTETS)
    if (takes_products(bits)) {
      if (j % 2 == 0)
        even = products(codes);
      else
        store_octet(quads + 64 * (j - 1), even, products(codes));
      return;
    }
#endif
    store_bytes(quads + 64 * j, takes_products(bits) ? products(codes) : codes);
  });
  store_i32(multipliers, takes_products(bits) ? splat_i32(1) : all);
}

size_t scratch_bytes(int64_t) { return kMaxStreams * sizeof(RowPanel); }

// A block of activations in a range: its groups, or one group as long as the range for products.
struct Part {
  const int8_t* codes;  // of the block's first run, from column 0 of the product on
  int64_t columns;      // of the product, not of the range
  int64_t first_column;
  int64_t groups;
  int64_t chunks;          // of a group
  const int32_t* offsets;  // of the block's first run
  int64_t first_group;     // of the range, in `offsets`
  int64_t all_groups;      // of a token, in `offsets`
};

// Adds the products of a chunk's quads with its activations to totals: those of kTokens tokens of runs of kRows, from
// token kSkip of the first run on. kBits: the most that a code has
template <int kBits, int kPanels, int kSkip, int kTokens, int kRows>
MOTE_INLINE void add_quads(const std::byte* quads, const int8_t* const* runs, I32x16 (*totals)[kTokens]) {
  constexpr bool kWide = kWideMatters && kBits == 8;
#if defined(MOTE_HAS_DOT_LANES)
  if constexpr (kPanels == 1 && kTokens == kRows) return add_panel_lanes<kRows, kQuads>(quads, runs[0], totals[0]);
#endif
  unroll<kQuads>([&](auto j) {
    Bytes64 codes[kPanels];
    unroll<kPanels>([&](auto p) { codes[p] = load_bytes(quads + p * sizeof(RowPanel) + 64 * j); });
    unroll<kTokens>([&](auto t) {
      const int8_t* quad = runs[(kSkip + t) / kRows] + 4 * (j * kRows + (kSkip + t) % kRows);
      if constexpr (kPanels == 1) {
        totals[0][t] = dot4_at<kWide>(totals[0][t], codes[0], quad);
      } else {
        int32_t value;
        std::memcpy(&value, quad, sizeof(value));
        unroll<kPanels>([&](auto p) { totals[p][t] = dot4<kWide>(totals[p][t], codes[p], value); });
      }
    });
  });
}

// Adds kPanels panels times kTokens tokens of a block's runs of kRows, from token kSkip of the run on that begins with
// token `first`, to y, their first sums. An activation is broadcast once for all panels; totals stay in registers for a
// group, sums in y, which the first cache keeps.
template <int kBits, int kPanels, int kSkip, int kTokens, int kRows>
void add_runs(const RowPanel* panels, const Part& x, int first, float* y, int64_t stride) {
  constexpr int kRuns = (kSkip + kTokens + kRows - 1) / kRows;
  const int8_t* runs[kRuns];
  const int32_t* offsets[kRuns];
  for (int r = 0; r < kRuns; ++r) {
    runs[r] = x.codes + (first + r * kRun) * x.columns + x.first_column * kRows;
    offsets[r] = x.offsets + (first + r * kRun) * x.all_groups + x.first_group * kRows;
  }
  const std::byte* quads = panels->quads;
  const int32_t* multipliers = panels->multipliers;
  for (int64_t g = 0; g < x.groups; ++g, multipliers += 16) {
    I32x16 totals[kPanels][kTokens];
    unroll<kTokens>([&](auto t) {
      for (int p = 0; p < kPanels; ++p)
        totals[p][t] = first_sums(offsets[(kSkip + t) / kRows] + g * kRows + (kSkip + t) % kRows);
    });
    for (int64_t chunk = 0; chunk < x.chunks; ++chunk, quads += 64 * kQuads) {
      add_quads<kBits, kPanels, kSkip, kTokens, kRows>(quads, runs, totals);
      for (int r = 0; r < kRuns; ++r) runs[r] += kChunk * kRows;
    }
    unroll<kPanels>([&](auto p) {
      const I32x16 multiplier = load_i32(multipliers + p * (sizeof(RowPanel) / sizeof(int32_t)));
      unroll<kTokens>([&](auto t) {
        float* sums = y + t * stride + 16 * p;
        store_i32(sums, load_i32(sums) + multiplier * totals[p][t]);
      });
    });
  }
}

template <int kBits, int kPanels>
void add_block(const RowPanel* panels, const Part& x, int tokens, float* y, int64_t stride) {
  int first = 0;
  if constexpr (kTokensAtOnce > kRun) {
    constexpr int kTurn = std::lcm(kTokensAtOnce, kRun);
    for (; first + kTurn <= tokens; first += kTurn) {
      unroll<kTurn / kTokensAtOnce>([&](auto part) {
        constexpr int kBegin = part * kTokensAtOnce, kSkip = kBegin % kRun;
        add_runs<kBits, kPanels, kSkip, kTokensAtOnce, kRun>(panels, x, first + kBegin - kSkip,
                                                             y + (first + kBegin) * stride, stride);
      });
    }
  }
  for_each_run(tokens, first, [&](int run, auto rows) {
    add_runs<kBits, kPanels, 0, rows, rows>(panels, x, run, y + run * stride, stride);
  });
}

template <int kBits>
void add_part(const RowPanel* panels, int count, const Part& x, int tokens, float* y, int64_t stride) {
  int p = 0;
  if constexpr (kPanelsAtOnce > 1) {
    for (; p + kPanelsAtOnce <= count; p += kPanelsAtOnce)
      add_block<kBits, kPanelsAtOnce>(panels + p, x, tokens, y + 16 * p, stride);
  }
  for (; p < count; ++p) add_block<kBits, 1>(panels + p, x, tokens, y + 16 * p, stride);
}

#if defined(MOTE_HAS_OCTETS)
// The same for products in octets: one multiplication for 2 rows x 8 columns x 2 tokens.
void add_octets(const RowPanel* panels, int count, const Part& x, int tokens, float* y, int64_t stride) {
  for (int p = 0; p < count; ++p) {
    for_each_run(tokens, 0, [&](int first, auto rows) MOTE_INLINE_LAMBDA {
      const std::byte* octet = panels[p].quads;
      const int8_t* quads = x.codes + first * x.columns + x.first_column * rows;
      OctetSums<rows> sums;
      for (int64_t column = 0; column < x.chunks * kChunk; column += 8, octet += kOctetBytes, quads += 8 * rows)
        sums.add(octet, quads);
      unroll<rows>([&](auto t) MOTE_INLINE_LAMBDA {
        float* to = y + (first + t) * stride + 16 * p;
        store_i32(to, load_i32(to) + sums.of_token(t));
      });
    });
  }
}
#endif

void multiply_block(const TileBlocks& w, const RowPanel* panels, const Range& range, const CodeBlock& x, float* y,
                    int64_t stride) {
  // Offsets of products are subtracted once for a row, those of codes for each group.
  constexpr int32_t kNone[kTokenBlock] = {};
  if (range.is_first)
    start_rows(x, w.count, takes_products(w.bits) && !kCodesAreSigned ? kProductOffset : 0, y, stride);
  const int64_t first_column = range.first_group * w.group_size, chunks = w.group_size / kChunk;
  Part part = {x.codes, w.columns(), first_column, range.groups, chunks, x.offsets, range.first_group, w.groups};
  if (takes_products(w.bits)) part = {x.codes, w.columns(), first_column, 1, range.groups * chunks, kNone, 0, 1};
#if defined(MOTE_HAS_OCTETS)
  const bool in_octets = takes_products(w.bits);
  if (in_octets) add_octets(panels, w.count, part, x.count, y, stride);
#else
  constexpr bool in_octets = false;
#endif
  if (!in_octets) {
    with_most_bits(w.bits, [&](auto bits) {
      if constexpr (takes(bits)) add_part<bits>(panels, w.count, part, x.count, y, stride);
    });
  }
  if (range.is_last) finish_rows(w, x, [&](int s) { return panels[s].weight_sums; }, y, stride);
}

void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride,
              std::byte* scratch) {
  multiply_panels<RowPanel>(
      w, x, num_blocks, y, stride, scratch,
      [&](auto bits, RowPanel& panel, int64_t group, const std::byte* tile) {
        unpack_to(bits, tile, w.group_size, panel.quads + group * 16 * w.group_size, panel.multipliers + 16 * group,
                  panel.weight_sums);
      },
      [&](const RowPanel* panels, const Range& range, const CodeBlock& block, float* rows) {
        multiply_block(w, panels, range, block, rows, stride);
      });
}

bool takes_panels(const WeightKind& kind) { return takes_tiles(kind) && takes(kind.bits); }

constexpr CodeProducts kPanels = {CodeLayout::kQuads, scratch_bytes, multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_panels_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .takes = takes_panels, .functions = &kPanels);

}  // namespace MOTE_ISA
}  // namespace mote
