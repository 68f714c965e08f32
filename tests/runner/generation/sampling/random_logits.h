// Logits as a model might give them.
#pragma once

#include <random>
#include <vector>

namespace mote::test {

inline std::vector<float> random_logits(std::mt19937& random, size_t count) {
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

}  // namespace mote::test
