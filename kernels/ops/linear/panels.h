// What products have in common that unpack a block of rows into panels once for all tokens. Only for *_panels.cpp.
#pragma once

#include "kernels/ops/linear/codes.h"

namespace mote {
inline namespace MOTE_ISA {

// Columns that are multiplied before the next are unpacked: two panels and a block of activations then fit the first
// cache. A multiple of every group size.
inline constexpr int64_t kPanelColumns = 512;

// For each range of columns unpack(bits, panel, group of the range, tile) for all of its tiles, then
// multiply_block(panels, range, activations, their sums) for each block of activations. A Panel has the weight_sums of
// its 16 rows.
template <typename Panel, typename Unpack, typename MultiplyBlock>
MOTE_INLINE void multiply_panels(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride,
                                 std::byte* scratch, const Unpack& unpack, const MultiplyBlock& multiply_block) {
  Panel* panels = reinterpret_cast<Panel*>(scratch);
  for (int s = 0; s < w.count; ++s) store_i32(panels[s].weight_sums, splat_i32(0));
  for_each_range(w, kPanelColumns, [&](const Range& range) {
    with_constant<FewWidths>(w.bits, [&](auto bits) {
      for_each_tile(w, range, bits,
                    [&](int s, int64_t group, const std::byte* tile) { unpack(bits, panels[s], group, tile); });
    });
    float* rows = y;
    for (int64_t b = 0; b < num_blocks; rows += x[b].count * stride, ++b) {
      fetch_after(w, range, b, num_blocks);
      multiply_block(panels, range, x[b], rows);
    }
  });
}

}  // namespace MOTE_ISA
}  // namespace mote
