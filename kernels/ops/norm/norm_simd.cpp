// Sums of a row: element k belongs to vector k / 16 % 4 and to its lane k % 16, so that four products are under way at
// once.
#include "kernels/ops/norm/norm.h"

#include <cmath>

#include "kernels/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// sum = add(x[k], sum) over a row, in the order above.
template <typename Function>
MOTE_INLINE float sum_of(const float* x, int64_t width, const Function& add) {
  F32x16 sums[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
  int64_t k = 0;
  for (; k + 64 <= width; k += 64) {
    for (int i = 0; i < 4; ++i) sums[i] = add(load_f32(x + k + 16 * i), sums[i]);
  }
  for (int i = 0; k < width; ++i, k += 16) sums[i] = add(load_upto(x + k, width - k), sums[i]);
  return sum_lanes((sums[0] + sums[2]) + (sums[1] + sums[3]));
}

MOTE_INLINE float mean_square(const float* x, int64_t width) {
  return sum_of(x, width, [](F32x16 value, F32x16 sum) { return fma(value, value, sum); }) / static_cast<float>(width);
}

void rms_norm(const float* x, const float* weight, float offset, float eps, int64_t width, float* y) {
  const F32x16 factor = splat(1.0f / std::sqrt(mean_square(x, width) + eps));
  for (int64_t k = 0; k < width; k += 16) {
    F32x16 value = load_upto(x + k, width - k) * factor;
    if (weight != nullptr) value = value * (load_upto(weight + k, width - k) + splat(offset));
    store_upto(y + k, value, width - k);
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, int64_t width, float* y) {
  const float sum = sum_of(x, width, [](F32x16 value, F32x16 total) { return value + total; });
  const F32x16 mean = splat(sum / static_cast<float>(width));
  for (int64_t k = 0; k < width; k += 16) store_upto(y + k, load_upto(x + k, width - k) - mean, width - k);
  const F32x16 factor = splat(1.0f / std::sqrt(mean_square(y, width) + eps));
  for (int64_t k = 0; k < width; k += 16) {
    F32x16 value = load_upto(y + k, width - k) * factor;
    if (weight != nullptr) value = value * load_upto(weight + k, width - k);
    if (bias != nullptr) value = value + load_upto(bias + k, width - k);
    store_upto(y + k, value, width - k);
  }
}

constexpr NormFunctions kFunctions = {rms_norm, layer_norm};

MOTE_REGISTER_KERNEL(.name = "norm_" MOTE_ISA_NAME, .role = NormFunctions::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
