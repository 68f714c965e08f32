// Against the definition in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "runner/generation/sampling/sampler.h"
#include "tests/runner/generation/sampling/random_logits.h"

namespace mote {
namespace {

using test::random_logits;

// The probabilities of the ids within n standard deviations of the largest logit, of those the top_k likeliest (0:
// all).
std::vector<double> expected(const std::vector<float>& logits, double n, double temperature, size_t top_k) {
  std::vector<double> finite;
  for (const float logit : logits)
    if (std::isfinite(logit)) finite.push_back(static_cast<double>(logit));
  double mean = 0.0;
  for (const double logit : finite) mean += logit / static_cast<double>(finite.size());
  double variance = 0.0;
  for (const double logit : finite) variance += (logit - mean) * (logit - mean) / static_cast<double>(finite.size());
  std::sort(finite.begin(), finite.end(), std::greater<>());
  double lowest = finite[0] - n * std::sqrt(variance);
  if (top_k > 0 && top_k <= finite.size()) lowest = std::max(lowest, finite[top_k - 1]);
  std::vector<double> result;
  double total = 0.0;
  for (const float logit : logits) {
    const bool stays = static_cast<double>(logit) >= lowest;
    result.push_back(stays ? std::exp((static_cast<double>(logit) - finite[0]) / temperature) : 0.0);
    total += result.back();
  }
  for (double& probability : result) probability /= total;
  return result;
}

TEST(TopNSigma, leaves_what_the_definition_leaves) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<float> logits = random_logits(random, 5000);
    if (round % 3 == 1) logits[random() % logits.size()] = -std::numeric_limits<float>::infinity();
    SamplingOptions options;
    options.do_sample = true;
    options.top_n_sigma = 0.25f * static_cast<float>(1 + round % 8);
    options.temperature = round % 2 == 0 ? 1.0f : 2.5f;
    options.top_k = round % 5 == 0 ? 3 : 0;
    Sampler sampler(options, static_cast<int32_t>(logits.size()));
    const std::vector<float> found = sampler.probabilities(logits);
    const std::vector<double> wanted =
        expected(logits, static_cast<double>(options.top_n_sigma), static_cast<double>(options.temperature),
                 static_cast<size_t>(options.top_k));
    for (size_t id = 0; id < logits.size(); ++id)
      ASSERT_NEAR(static_cast<double>(found[id]), wanted[id], 1e-6) << "round " << round << ", id " << id;
  }
}

TEST(TopNSigma, equal_logits_all_stay) {
  SamplingOptions options;
  options.do_sample = true;
  options.top_n_sigma = 1.0f;
  Sampler sampler(options, 4);
  EXPECT_EQ(sampler.probabilities(std::vector<float>(4, 2.0f)), std::vector<float>(4, 0.25f));
}

TEST(TopNSigma, draws_only_what_stays_and_is_allowed) {
  std::mt19937 random(3);
  const std::vector<float> logits = random_logits(random, 300);
  SamplingOptions options;
  options.do_sample = true;
  options.top_n_sigma = 0.5f;
  Sampler sampler(options, 300);
  const std::vector<float> all = sampler.probabilities(logits);
  std::vector<uint32_t> mask(10);
  for (uint32_t id = 0; id < 300; id += 2) mask[id / 32] |= 1U << (id % 32);
  for (int draw = 0; draw < 200; ++draw) EXPECT_GT(all[static_cast<size_t>(sampler.sample(logits))], 0.0f);
  sampler.allow_only(mask);
  for (int draw = 0; draw < 200; ++draw) EXPECT_EQ(sampler.sample(logits) % 2, 0);
}

}  // namespace
}  // namespace mote
