#include "kernels/ops/softmax/softmax.h"

#include <limits>

#include "kernels/kernel.h"
#include "kernels/simd/math.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Lanes past the end are -infinity: they are no maximum, and e^x of them is 0.
MOTE_INLINE F32x16 load_line(const float* x, int64_t count) {
  if (count >= 16) return load_f32(x);
  float all[16];
  for (float& value : all) value = kLowest;
  std::memcpy(all, x, static_cast<size_t>(count) * sizeof(float));
  return load_f32(all);
}

float maximum(const float* x, int64_t n) {
  F32x16 most[4] = {splat(kLowest), splat(kLowest), splat(kLowest), splat(kLowest)};
  int64_t k = 0;
  for (; k + 64 <= n; k += 64) {
    for (int i = 0; i < 4; ++i) most[i] = max(load_f32(x + k + 16 * i), most[i]);
  }
  for (int i = 0; k < n; ++i, k += 16) most[i] = max(load_line(x + k, n - k), most[i]);
  return max_lanes(max(max(most[0], most[1]), max(most[2], most[3])));
}

float exponentials(const float* x, int64_t n, float top, float* y) {
  F32x16 sum = splat(0.0f);
  for (int64_t k = 0; k < n; k += 16) {
    const F32x16 value = exp(load_line(x + k, n - k) - splat(top));
    store_upto(y + k, value, n - k);
    sum = sum + value;
  }
  return sum_lanes(sum);
}

void divide(float* y, int64_t n, float divisor) {
  for (int64_t k = 0; k < n; k += 16) store_upto(y + k, load_upto(y + k, n - k) / splat(divisor), n - k);
}

constexpr SoftmaxFunctions kFunctions = {maximum, exponentials, divide};

MOTE_REGISTER_KERNEL(.name = "softmax_" MOTE_ISA_NAME, .role = SoftmaxFunctions::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
