// What the products of int8 activations and tiles of 1 to 8 bits share. Only for *_int8.cpp and *_ISA.cpp.
#pragma once

#include <utility>

#include "kernels/linear/tiles.h"

namespace mote {
inline namespace MOTE_ISA {

// What the sum of a group's products begins with, so that it ends as the sum of products of signed codes.
MOTE_INLINE I32x16 first_sums(const int32_t* offset) { return splat_i32(kCodesAreSigned ? 0 : *offset); }

// The sum of a row's codes, whatever kCodesAreSigned says.
template <int kBits>
MOTE_INLINE F32x16 code_sums(const I32x16& sums, int64_t group_size) {
  return to_f32(kCodesAreSigned ? sums : sums - splat_i32(static_cast<int32_t>(code_offset(kBits) * group_size)));
}

inline constexpr int kRun = run_rows(CodeLayout::kQuads);

// body(first token, its constant number of tokens) for each run of a block from token `first` on.
template <typename Body>
MOTE_INLINE void for_each_run(const CodeBlock& x, int first, const Body& body) {
  for (; first + kRun <= x.count; first += kRun) body(first, std::integral_constant<int, kRun>());
  unroll<kRun - 1>([&](auto index) MOTE_INLINE_LAMBDA {
    if (x.count - first == index + 1) body(first, std::integral_constant<int, index + 1>());
  });
}

MOTE_INLINE F32x16 finish_sums(const CodeBlock& x, int64_t t, const F32x16& sums, const F32x16& weight_sums) {
  return splat(x.scales[t]) * fnma(splat(x.zeros[t]), weight_sums, sums);
}

// Sums that are kept in y, for kernels whose registers cannot hold them: rows of 16 a stream.
MOTE_INLINE void clear_rows(const CodeBlock& x, int streams, float* y, int64_t stride) {
  for (int t = 0; t < x.count; ++t) {
    for (int s = 0; s < streams; ++s) store_f32(y + t * stride + 16 * s, splat(0.0f));
  }
}
// weight_sums(s): those of a stream's rows, [16]
template <typename WeightSums>
MOTE_INLINE void finish_rows(const CodeBlock& x, int streams, const WeightSums& weight_sums, float* y, int64_t stride) {
  for (int t = 0; t < x.count; ++t) {
    for (int s = 0; s < streams; ++s) {
      float* sums = y + t * stride + 16 * s;
      store_f32(sums, finish_sums(x, t, load_f32(sums), load_f32(weight_sums(s))));
    }
  }
}

// Columns [first_group * group_size, ...) of a product.
struct Range {
  int64_t first_group;
  int64_t groups;
  bool is_first;
  bool is_last;
};

// 16 rows of a range, unpacked. Scales before the first group's and after the last one's are for the kernel's own ends.
template <int64_t kColumns, int kBefore = 0, int kAfter = 0>
struct Panel {
  std::byte quads[16 * kColumns];                                  // [columns / 4][64]
  float padded_scales[16 * (kBefore + kColumns / kChunk + kAfter)];
  float weight_sums[16];                                           // through all ranges

  float* scales() { return padded_scales + 16 * kBefore; }              // [groups][16]
  const float* scales() const { return padded_scales + 16 * kBefore; }
};

// One tile. kSigned: codes in place of what dot4 takes.
template <int kBits, bool kSigned>
MOTE_INLINE void unpack_tile(const std::byte* tile, int64_t group_size, std::byte* quads, float* scales, float* weight_sums) {
  constexpr int kSubtracted = kSigned && !kCodesAreSigned ? code_offset(kBits) : 0;
  I32x16 codes_alone = splat_i32(0);
  for (int64_t chunk = 0; chunk < group_size / kChunk; ++chunk, quads += 64 * kQuads) {
    Bytes64 codes[kQuads];
    unpack_chunk<kBits>(tile, group_size, chunk, codes);
    unroll<kQuads>([&](auto j) {
      codes_alone = dot4<kBits == 8>(codes_alone, codes[j], kOnes);
      store_bytes(quads + 64 * j, kSubtracted == 0 ? codes[j] : subtract(codes[j], kSubtracted));
    });
  }
  const F32x16 scale = load_f16(tile + code_bytes(kBits, group_size));
  store_f32(scales, scale);
  store_f32(weight_sums, fma(scale, code_sums<kBits>(codes_alone, group_size), load_f32(weight_sums)));
}

// The range of every stream, read side by side: memory answers several streams faster than one.
template <int kBits, bool kSigned, typename AnyPanel>
void unpack_panels(const TileBlocks& w, const Range& range, AnyPanel* panels) {
  if (range.is_first) {
    for (int s = 0; s < w.count; ++s) store_f32(panels[s].weight_sums, splat(0.0f));
  }
  const int64_t bytes = tile_bytes(kBits, w.group_size);
  for (int64_t g = 0; g < range.groups; ++g) {
    for (int s = 0; s < w.count; ++s) {
      const std::byte* tile = w.blocks[s] + (range.first_group + g) * bytes;
      AnyPanel& panel = panels[s];
      fetch(tile, bytes);
      unpack_tile<kBits, kSigned>(tile, w.group_size, panel.quads + g * 16 * w.group_size, panel.scales() + 16 * g,
                                  panel.weight_sums);
    }
  }
}

// multiply(range) for ranges of at most `columns`, a multiple of the group size.
template <typename Function>
MOTE_INLINE void for_each_range(const TileBlocks& w, int64_t columns, const Function& multiply) {
  const int64_t groups_at_once = columns / w.group_size;
  for (int64_t g = 0; g < w.groups; g += groups_at_once) {
    const int64_t groups = w.groups - g < groups_at_once ? w.groups - g : groups_at_once;
    multiply(Range{g, groups, g == 0, g + groups == w.groups});
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
