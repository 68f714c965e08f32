#include "runner/session/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/support/math.h"
#include "kernels/support/scan.h"

namespace mote {
namespace {

constexpr size_t kPart = 4096;  // logits that are summed in float

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const ScanFunctions& scan = scan_functions();
  const float top = scan.maximum(logits.data(), static_cast<int64_t>(logits.size()));
  if (!std::isfinite(top)) return static_cast<double>(top);
  double sum = 0.0;
  for (size_t begin = 0; begin < logits.size(); begin += kPart) {
    const std::span<const float> part = logits.subspan(begin, std::min(kPart, logits.size() - begin));
    sum += static_cast<double>(scan.exponentials(part.data(), static_cast<int64_t>(part.size()), top, 1.0f, nullptr));
  }
  return static_cast<double>(top) + math::log(sum);
}

float log_probability(float logit, double total) {
  if (std::isfinite(total) && logit > -std::numeric_limits<float>::infinity()) {
    return static_cast<float>(std::min(0.0, static_cast<double>(logit) - total));
  }
  return static_cast<double>(logit) == total && total > 0.0 ? 0.0f : -std::numeric_limits<float>::infinity();
}

}  // namespace mote
