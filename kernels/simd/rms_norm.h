// Root mean square normalisation of a row; like vectors.h, only for *_simd.cpp.
#pragma once

#include <cmath>

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

// Element k is added in lane k % 16, then sum_lanes.
MOTE_INLINE float sum_of_squares(const float* x, int64_t width) {
  F32x16 sum = splat(0.0f);
  int64_t k = 0;
  for (; k + 16 <= width; k += 16) {
    const F32x16 v = load_f32(x + k);
    sum = fma(v, v, sum);
  }
  if (k < width) {
    const F32x16 v = load_part(x + k, width - k);
    sum = fma(v, v, sum);
  }
  return sum_lanes(sum);
}

// y = x / sqrt(mean(x^2) + eps) * (weight + offset); weight may be nullptr, y may be x.
MOTE_INLINE void rms_norm_row(const float* x, int64_t width, float eps, const float* weight, float offset, float* y) {
  const F32x16 factor = splat(1.0f / std::sqrt(sum_of_squares(x, width) / static_cast<float>(width) + eps));
  int64_t k = 0;
  for (; k + 16 <= width; k += 16) {
    const F32x16 v = load_f32(x + k) * factor;
    store_f32(y + k, weight == nullptr ? v : v * (load_f32(weight + k) + splat(offset)));
  }
  if (k < width) {
    const F32x16 v = load_part(x + k, width - k) * factor;
    store_part(y + k, weight == nullptr ? v : v * (load_part(weight + k, width - k) + splat(offset)), width - k);
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
