// How many queries, blocks and columns a register tile holds; results do not depend on it. Only for *_simd.cpp.
#pragma once

#include "kernels/ops/attention/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

#if defined(__AVX512F__)
inline constexpr int kTileSums = 24;  // vectors of sums that fit the registers
inline constexpr int kMostRows = 6;
#else
inline constexpr int kTileSums = 4;
inline constexpr int kMostRows = 4;
#endif

template <int kValue>
struct Constant {};

// function(Constant<kRows>, row) for all of [row, rows), kMost rows at a time and then fewer.
template <int kMost, typename Function>
MOTE_INLINE void for_row_tiles(int row, int rows, const Function& function) {
  for (; row + kMost <= rows; row += kMost) function(Constant<kMost>(), row);
  if constexpr (kMost > 1) for_row_tiles<(kMost > 4 ? 4 : kMost / 2)>(row, rows, function);
}

// How many blocks or columns a register tile holds for `rows` queries, up to `most`.
constexpr int beside(int rows, int most) { return kTileSums / rows < most ? kTileSums / rows : most; }

MOTE_INLINE F32x16 magnitude(F32x16 x) { return max(x, splat(0.0f) - x); }

// Bit i of the mask ? x : y.
MOTE_INLINE F32x16 select_lanes(uint32_t mask, F32x16 x, F32x16 y) {
#if defined(__AVX512F__)
  return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), y.v, x.v)};
#else
  int32_t bits[16];
  for (int i = 0; i < 16; ++i) bits[i] = 1 << i;
  const F32x16 chosen = to_f32(load_i32(bits) & splat_i32(static_cast<int32_t>(mask)));
  return select_less(splat(0.0f), chosen, x, y);
#endif
}

inline constexpr uint32_t kAllLanes = 0xFFFF;

}  // namespace MOTE_ISA
}  // namespace mote
