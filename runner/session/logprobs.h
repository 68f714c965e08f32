// How likely ids are by the model's own distribution: softmax of its logits, before any option acts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mote {

struct TokenLogprob {
  int32_t id = -1;
  float logprob = 0.0f;  // natural logarithm, at most 0; -infinity: impossible, or a logit that is not a number
};

// The natural logarithm of the sum of e^logit: infinity if a logit is infinite, -infinity if all are -infinity. Cost:
// two passes.
double log_sum_exp(std::span<const float> logits);

// The log-probability of the id with this logit. `total`: log_sum_exp of all logits.
float log_probability(float logit, double total);

}  // namespace mote
