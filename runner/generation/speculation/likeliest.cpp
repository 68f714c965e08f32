#include "runner/generation/speculation/likeliest.h"

#include <algorithm>
#include <cmath>

#include "kernels/support/scan.h"
#include "runner/session/logprobs.h"

namespace mote {

Likeliest likeliest(std::span<const float> logits) {
  constexpr float kBounds[] = {0.1f,  0.2f, 0.35f, 0.5f,
                               0.65f, 0.8f, 0.92f};  // the lowest probability of grades 1, 2, ...
  const int64_t id = scan_functions().argmax(logits.data(), static_cast<int64_t>(logits.size()));
  const float probability = std::exp(log_probability(logits[static_cast<size_t>(id)], log_sum_exp(logits)));
  const auto grade = std::upper_bound(std::begin(kBounds), std::end(kBounds), probability) - std::begin(kBounds);
  return {static_cast<int32_t>(id), static_cast<size_t>(grade)};
}

}  // namespace mote
