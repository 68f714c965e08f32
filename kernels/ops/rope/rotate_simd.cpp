// The rotation of mote.rope, once for each instruction set. Products and sums are not fused: the same bits as
// PyTorch's.
#include <algorithm>

#include "kernels/kernel.h"
#include "kernels/ops/rope/rotate.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

namespace {

// (a, b) are the elements of a pair: a cos - b sin, b cos + a sin, each with the cos and sin of its own place.
template <typename Load, typename Store>
MOTE_INLINE void turn(const float* a, const float* b, const float* cos_a, const float* sin_a, const float* cos_b,
                      const float* sin_b, float* to_a, float* to_b, const Load& load, const Store& store) {
  const F32x16 x = load(a), y = load(b);
  const F32x16 turned_x = x * load(cos_a) - y * load(sin_a);
  store(to_b, y * load(cos_b) + x * load(sin_b));
  store(to_a, turned_x);
}

// Element i of the half at `a` pairs with element i of the half at `b`; both count from the row's begin.
MOTE_INLINE void rotate_halves(const float* x, const float* cos, const float* sin, int64_t a, int64_t b, int64_t half,
                               float* y) {
  int64_t i = 0;
  for (; i + 16 <= half; i += 16) {
    turn(
        x + a + i, x + b + i, cos + a + i, sin + a + i, cos + b + i, sin + b + i, y + a + i, y + b + i,
        [](const float* from) MOTE_INLINE_LAMBDA { return load_f32(from); },
        [](float* to, F32x16 value) MOTE_INLINE_LAMBDA { store_f32(to, value); });
  }
  if (i == half) return;
  const int64_t rest = half - i;
  turn(
      x + a + i, x + b + i, cos + a + i, sin + a + i, cos + b + i, sin + b + i, y + a + i, y + b + i,
      [=](const float* from) MOTE_INLINE_LAMBDA { return load_part(from, rest); },
      [=](float* to, F32x16 value) MOTE_INLINE_LAMBDA { store_part(to, value, rest); });
}

// Up to 16 pairs of neighbours are taken apart and rotated as halves. Written as one loop over pairs, GCC makes fused
// multiply-add-subtracts of it, in spite of -ffp-contract=off and only where it finds that y does not overlap x.
MOTE_INLINE void rotate_neighbours(const float* x, const float* cos, const float* sin, int64_t pairs, float* y) {
  float parts[3][32], turned[32];
  const float* rows[3] = {x, cos, sin};
  for (int row = 0; row < 3; ++row) {
    for (int64_t i = 0; i < pairs; ++i) {
      parts[row][i] = rows[row][2 * i];
      parts[row][pairs + i] = rows[row][2 * i + 1];
    }
  }
  rotate_halves(parts[0], parts[1], parts[2], 0, pairs, pairs, turned);
  for (int64_t i = 0; i < pairs; ++i) {
    y[2 * i] = turned[i];
    y[2 * i + 1] = turned[pairs + i];
  }
}

void rotate(RopeLayout layout, const float* x, const float* cos, const float* sin, int64_t turned, float* y) {
  const int64_t half = turned / 2;
  switch (layout) {
    case RopeLayout::kHalf: return rotate_halves(x, cos, sin, 0, half, half, y);
    case RopeLayout::kHalfFlipped: return rotate_halves(x, cos, sin, half, 0, half, y);
    case RopeLayout::kInterleaved:
      for (int64_t i = 0; i < half; i += 16) {
        rotate_neighbours(x + 2 * i, cos + 2 * i, sin + 2 * i, std::min<int64_t>(16, half - i), y + 2 * i);
      }
  }
}

constexpr RopeKernel kRope = {rotate};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "rope_" MOTE_ISA_NAME, .role = RopeKernel::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kRope);

}  // namespace MOTE_ISA
}  // namespace mote
