#include "kernels/support/scan.h"

#include <limits>

#include "kernels/simd/math.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
// Elements; those of a chunk are looked at one by one only if the largest of them matters.
constexpr int64_t kChunk = 256, kSmallChunk = 64;

MOTE_INLINE F32x16 lowest() { return splat(kLowest); }

MOTE_INLINE float chunk_maximum(const float* x, int64_t n) {
  F32x16 most[4] = {lowest(), lowest(), lowest(), lowest()};
  int64_t k = 0;
  for (; k + 64 <= n; k += 64) {
    for (int i = 0; i < 4; ++i) most[i] = max(load_f32(x + k + 16 * i), most[i]);  // so a NaN is passed over
  }
  float rest = kLowest;
  for (; k < n; ++k) rest = x[k] > rest ? x[k] : rest;
  const float largest = max_lanes(max(max(most[0], most[1]), max(most[2], most[3])));
  return rest > largest ? rest : largest;
}

float maximum(const float* x, int64_t n) { return chunk_maximum(x, n); }

int64_t argmax(const float* x, int64_t n) {
  float largest = kLowest;
  int64_t chunk = 0;
  for (int64_t k = 0; k < n; k += kChunk) {
    const float here = chunk_maximum(x + k, n - k < kChunk ? n - k : kChunk);
    if (!(here > largest)) continue;
    largest = here;
    chunk = k;
  }
  for (int64_t k = chunk; k < n; ++k) {
    if (x[k] == largest) return k;
  }
  return 0;
}

int64_t at_least(const float* x, int64_t n, float threshold, int32_t* indices) {
  int64_t count = 0;
  for (int64_t k = 0; k < n; k += kSmallChunk) {
    const int64_t end = n - k < kSmallChunk ? n : k + kSmallChunk;
    if (!(chunk_maximum(x + k, end - k) >= threshold)) continue;
    for (int64_t i = k; i < end; ++i) {
      indices[count] = static_cast<int32_t>(i);
      count += x[i] >= threshold ? 1 : 0;
    }
  }
  return count;
}

float exponentials(const float* x, int64_t n, float top, float factor, float* y) {
  F32x16 sum = splat(0.0f);
  const auto terms = [&](F32x16 value) { return exp((max(value, lowest()) - splat(top)) * splat(factor)); };
  int64_t k = 0;
  for (; k + 16 <= n; k += 16) {
    const F32x16 term = terms(load_f32(x + k));
    if (y != nullptr) store_f32(y + k, term);
    sum = sum + term;
  }
  if (k < n) {
    float rest[16];
    for (int i = 0; i < 16; ++i) rest[i] = k + i < n ? x[k + i] : kLowest;
    const F32x16 term = terms(load_f32(rest));
    if (y != nullptr) store_part(y + k, term, n - k);
    sum = sum + term;
  }
  return sum_lanes(sum);
}

constexpr ScanFunctions kFunctions = {maximum, argmax, at_least, exponentials};

MOTE_REGISTER_KERNEL(.name = "scan_" MOTE_ISA_NAME, .role = ScanFunctions::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
