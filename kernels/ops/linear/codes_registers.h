// Products of panels of signed bytes in registers of 16 x 16 sums (AMX, SME). Only for *_ISA.cpp.
#pragma once

#include <cstring>

#include "kernels/ops/linear/codes.h"

namespace mote {
inline namespace MOTE_ISA {

inline constexpr int kBlocks = 2;  // blocks of tokens for which a panel is loaded once
inline constexpr int kPanels = 2;  // panels for which a block of activations is loaded once

// What each instruction set supplies, made once for all products of a call.
//   kStep          columns of an instruction: panels and codes have that many, or those past their end do nothing
//   kPanelColumns  that are multiplied before the next are unpacked
//   Splitter(bits, multipliers), then (codes, low, high): multiplier * code as 256 * high + low, both signed, of 64
//   codes code_pitch(count)  bytes of kStep columns of a block of so many activations multiply<kCount>(panels, codes,
//   counts, steps, sums)  kPanels panels times kCount blocks
using BlockSums = int32_t[kPanels][kTokenBlock][16];

template <typename Unit>
class RegisterProducts {
 public:
  static size_t scratch_bytes(int64_t) { return sizeof(Scratch); }

  static void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride,
                       std::byte* memory) {
    Scratch& scratch = *reinterpret_cast<Scratch*>(memory);
    for (int s = 0; s < w.count; ++s) store_i32(scratch.weight_sums[s], splat_i32(0));
    Unit unit;
    for_each_range(w, Unit::kPanelColumns, [&](const Range& range) {
      unpack(w, range, scratch);
      float* rows = y;
      int64_t b = 0;
      for (; b + kBlocks <= num_blocks; b += kBlocks) {
        multiply_blocks<kBlocks>(unit, w, range, x + b, rows, stride, scratch);
        rows += (x[b].count + x[b + 1].count) * stride;
      }
      if (b < num_blocks) multiply_blocks<1>(unit, w, range, x + b, rows, stride, scratch);
    });
  }

 private:
  // Of 16 rows of a range, [columns / 4][16 rows][4].
  using Panel = std::byte[16 * Unit::kPanelColumns];

  struct Scratch {
    Panel panels[2 * kMaxStreams];
    int32_t weight_sums[kMaxStreams][16];  // over all ranges
    BlockSums sums[kBlocks];
  };

  // Panels that a block of rows takes: two where products take two bytes.
  static int panels_per_block(const TileBlocks& w) { return products_fit_bytes(w.bits) ? 1 : 2; }

  template <typename Bits>
  static void unpack_to(Bits bits, const std::byte* tile, int64_t group_size, std::byte* low, std::byte* high,
                        int32_t* weight_sums) {
    const I32x16 multipliers = load_multipliers(bits, tile, group_size);
    const ByteProducts products(bits, multipliers);
    const typename Unit::Splitter split(bits, multipliers);
    unpack_tile(bits, tile, group_size, multipliers, weight_sums,
                [&](int64_t j, const Bytes64& codes) MOTE_INLINE_LAMBDA {
                  if (!products_fit_bytes(bits)) {
                    split(codes, low + 64 * j, high + 64 * j);
                  } else {
                    const Bytes64 bytes = products(codes);
                    store_bytes(low + 64 * j, kCodesAreSigned ? bytes : subtract(bytes, kProductOffset));
                  }
                });
  }

  static void unpack(const TileBlocks& w, const Range& range, Scratch& scratch) {
    with_constant<FewWidths>(w.bits, [&](auto bits) {
      for_each_tile(w, range, bits, [&](int s, int64_t group, const std::byte* tile) {
        const int each = products_fit_bytes(bits) ? 1 : 2;
        const int64_t at = group * 16 * w.group_size;
        std::byte* low = scratch.panels[each * s] + at;
        std::byte* high = scratch.panels[each * s + each - 1] + at;
        unpack_to(bits, tile, w.group_size, low, high, scratch.weight_sums[s]);
      });
    });
    const int64_t columns = range.groups * w.group_size, missing = (Unit::kStep - columns % Unit::kStep) % Unit::kStep;
    for (int p = 0; p < w.count * panels_per_block(w); ++p) {
      std::memset(scratch.panels[p] + 16 * columns, 0, static_cast<size_t>(16 * missing));
    }
  }

  // Adds total(t), the sums of a range for block s of weight rows and token t of x, to y. The last range finishes y.
  template <typename Total>
  static void add_sums(const TileBlocks& w, int s, const Range& range, const int32_t* weight_sums, const CodeBlock& x,
                       float* y, int64_t stride, const Total& total) {
    const I32x16 sums_of_row = load_i32(weight_sums);
    const F32x16 scale = load_f32(w.row_scales(s));
    for (int t = 0; t < x.count; ++t, y += stride) {
      I32x16 all = total(t);
      if (!range.is_first) all = all + load_i32(y);
      if (range.is_last)
        store_f32(y, finish_sums(x, t, all, sums_of_row, scale));
      else
        store_i32(y, all);
    }
  }

  template <int kCount>
  static void multiply_blocks(Unit& unit, const TileBlocks& w, const Range& range, const CodeBlock* x, float* y,
                              int64_t stride, Scratch& scratch) {
    const int8_t* codes[kCount];
    int counts[kCount];
    for (int b = 0; b < kCount; ++b) {
      counts[b] = x[b].count;
      codes[b] = x[b].codes + range.first_group * w.group_size / Unit::kStep * Unit::code_pitch(counts[b]);
    }
    const int64_t steps = (range.groups * w.group_size + Unit::kStep - 1) / Unit::kStep;
    const int each = panels_per_block(w), at_once = kPanels / each;
    for (int s = 0; s < w.count; s += at_once) {
      unit.template multiply<kCount>(scratch.panels[each * s], scratch.panels[each * s + 1], codes, counts, steps,
                                     scratch.sums);
      float* to = y + 16 * s;
      for (int b = 0; b < kCount; to += x[b].count * stride, ++b) {
        const BlockSums& sums = scratch.sums[b];
        if (each == 2) {
          add_sums(w, s, range, scratch.weight_sums[s], x[b], to, stride, [&](int t) MOTE_INLINE_LAMBDA {
            return load_i32(sums[0][t]) + shift_left<8>(load_i32(sums[1][t]));
          });
          continue;
        }
        for (int p = 0; p < kPanels && s + p < w.count; ++p) {
          add_sums(w, s + p, range, scratch.weight_sums[s + p], x[b], to + 16 * p, stride,
                   [&](int t) MOTE_INLINE_LAMBDA { return load_i32(sums[p][t]); });
        }
      }
    }
  }
};

}  // namespace MOTE_ISA
}  // namespace mote
