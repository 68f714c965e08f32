// int8 activations x tiles of 1 to 8 bits for many tokens: a block of rows is unpacked once for all of them.
#include <cstring>

#include "kernels/linear/codes.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// Columns that are multiplied before the next are unpacked: two panels and a block of activations then fit the first cache.
// A multiple of every group size.
constexpr int64_t kPanelColumns = 512;

using RowPanel = Panel<kPanelColumns>;

size_t scratch_bytes(int64_t) { return kMaxStreams * sizeof(RowPanel); }

// Adds kPanels panels times kRuns runs of kRows tokens of a block, from token `first` on, to y. An activation is broadcast once
// for all panels; totals stay in registers for a group, sums in y, which the first cache keeps.
template <bool kWide, int kPanels, int kRuns, int kRows>
void add_runs(const RowPanel* panels, const Range& range, const TileBlocks& w, const CodeBlock& x, int first, float* y,
              int64_t stride) {
  constexpr int kTokens = kRuns * kRows;
  const int64_t chunks = w.group_size / kChunk;
  const int8_t* runs[kRuns];
  const int32_t* offsets[kRuns];
  for (int r = 0; r < kRuns; ++r) {
    runs[r] = x.codes + (first + r * kRun) * w.columns() + range.first_group * w.group_size * kRows;
    offsets[r] = x.offsets + (first + r * kRun) * w.groups + range.first_group * kRows;
  }
  const std::byte* quads = panels->quads;
  const float* scales = panels->scales();
  for (int64_t g = 0; g < range.groups; ++g, scales += 16) {
    I32x16 totals[kPanels][kTokens];
    unroll<kTokens>([&](auto t) {
      for (int p = 0; p < kPanels; ++p) totals[p][t] = first_sums(offsets[t / kRows] + g * kRows + t % kRows);
    });
    for (int64_t chunk = 0; chunk < chunks; ++chunk, quads += 64 * kQuads) {
      unroll<kQuads>([&](auto j) {
        Bytes64 codes[kPanels];
        unroll<kPanels>([&](auto p) { codes[p] = load_bytes(quads + p * sizeof(RowPanel) + 64 * j); });
        unroll<kTokens>([&](auto t) {
          const int8_t* quad = runs[t / kRows] + 4 * (j * kRows + t % kRows);
          if constexpr (kPanels == 1) {
            totals[0][t] = dot4_at<kWide>(totals[0][t], codes[0], quad);
          } else {
            int32_t value;
            std::memcpy(&value, quad, sizeof(value));
            unroll<kPanels>([&](auto p) { totals[p][t] = dot4<kWide>(totals[p][t], codes[p], value); });
          }
        });
      });
      for (int r = 0; r < kRuns; ++r) runs[r] += kChunk * kRows;
    }
    unroll<kPanels>([&](auto p) {
      const F32x16 scale = load_f32(scales + p * (sizeof(RowPanel) / sizeof(float)));
      unroll<kTokens>([&](auto t) {
        float* sums = y + t * stride + 16 * p;
        store_f32(sums, fma(scale, to_f32(totals[p][t]), load_f32(sums)));
      });
    });
  }
}

template <bool kWide, int kPanels>
void add_block(const RowPanel* panels, const Range& range, const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  int first = 0;
  if constexpr (kRunsAtOnce > 1) {
    for (; first + kRunsAtOnce * kRun <= x.count; first += kRunsAtOnce * kRun) {
      add_runs<kWide, kPanels, kRunsAtOnce, kRun>(panels, range, w, x, first, y + first * stride, stride);
    }
  }
  for_each_run(x, first, [&](int run, auto rows) {
    add_runs<kWide, kPanels, 1, rows>(panels, range, w, x, run, y + run * stride, stride);
  });
}

template <bool kWide>
void add_range(const RowPanel* panels, const Range& range, const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  int p = 0;
  if constexpr (kPanelsAtOnce > 1) {
    for (; p + kPanelsAtOnce <= w.count; p += kPanelsAtOnce) {
      add_block<kWide, kPanelsAtOnce>(panels + p, range, w, x, y + 16 * p, stride);
    }
  }
  for (; p < w.count; ++p) add_block<kWide, 1>(panels + p, range, w, x, y + 16 * p, stride);
}

void multiply_block(const TileBlocks& w, const RowPanel* panels, const Range& range, const CodeBlock& x, float* y, int64_t stride) {
  if (range.is_first) clear_rows(x, w.count, y, stride);
  if (kWideMatters && w.bits == 8) add_range<kWideMatters>(panels, range, w, x, y, stride);
  else add_range<false>(panels, range, w, x, y, stride);
  if (range.is_last) finish_rows(x, w.count, [&](int s) { return panels[s].weight_sums; }, y, stride);
}

void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte* scratch) {
  RowPanel* panels = reinterpret_cast<RowPanel*>(scratch);
  for_each_range(w, kPanelColumns, [&](const Range& range) {
    with_bits(w.bits, [&](auto bits) { unpack_panels<bits, false>(w, range, panels); });
    float* rows = y;
    for (int64_t b = 0; b < num_blocks; rows += x[b].count * stride, ++b) {
      multiply_block(w, panels, range, x[b], rows, stride);
    }
  });
}

constexpr CodeProducts kPanels = {CodeLayout::kQuads, scratch_bytes, multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_panels_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .takes = takes_tiles, .functions = &kPanels);

}  // namespace MOTE_ISA
}  // namespace mote
