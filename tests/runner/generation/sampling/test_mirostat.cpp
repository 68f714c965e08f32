// Against a plain implementation of algorithm 2 of Basu et al., "Mirostat".
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "runner/generation/sampling/sampler.h"
#include "tests/runner/generation/sampling/random_logits.h"

namespace mote {
namespace {

using test::random_logits;

SamplingOptions mirostat(float tau, float eta, uint64_t seed = 1) {
  SamplingOptions options;
  options.do_sample = true;
  options.seed = seed;
  options.mirostat = Mirostat::kVersion2;
  options.mirostat_tau = tau;
  options.mirostat_eta = eta;
  return options;
}

// Probabilities of the ids whose surprise is at most `most` bits, or of the likeliest alone.
std::vector<double> kept(const std::vector<float>& logits, double most) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> probabilities;
  for (const float logit : logits) probabilities.push_back(std::exp(static_cast<double>(logit) - top));
  const double all = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  const auto likeliest = std::max_element(probabilities.begin(), probabilities.end());
  for (auto probability = probabilities.begin(); probability != probabilities.end(); ++probability) {
    if (-std::log2(*probability / all) > most && probability != likeliest) *probability = 0.0;
  }
  const double rest = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= rest;
  return probabilities;
}

TEST(Mirostat, keeps_and_learns_as_the_paper_does) {
  std::mt19937 random(11);
  for (const float tau : {0.5f, 3.0f, 8.0f}) {
    Sampler sampler(mirostat(tau, 0.3f), 2000);
    double most = 2.0 * static_cast<double>(tau);
    for (int step = 0; step < 60; ++step) {
      const std::vector<float> logits = random_logits(random, 2000);
      const std::vector<double> wanted = kept(logits, most);
      const std::vector<float> found = sampler.probabilities(logits);
      for (size_t id = 0; id < logits.size(); ++id)
        ASSERT_NEAR(static_cast<double>(found[id]), wanted[id], 1e-6) << "step " << step << ", id " << id;
      const auto drawn = static_cast<size_t>(sampler.sample(logits));
      ASSERT_GT(wanted[drawn], 0.0);
      most -= static_cast<double>(0.3f) * (-std::log2(wanted[drawn]) - static_cast<double>(tau));
    }
  }
}

TEST(Mirostat, the_surprise_comes_to_what_is_aimed_at) {
  std::mt19937 random(5);
  const std::vector<float> logits = random_logits(random, 5000);
  Sampler sampler(mirostat(4.0f, 0.1f), 5000);
  double surprise = 0.0;
  constexpr int kDraws = 2000;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<float> probabilities = sampler.probabilities(logits);
    const auto id = static_cast<size_t>(sampler.sample(logits));
    if (draw >= kDraws / 2) surprise -= std::log2(static_cast<double>(probabilities[id])) / (kDraws / 2);
  }
  EXPECT_NEAR(surprise, 4.0, 0.1);
}

TEST(Mirostat, takes_the_place_of_other_filters) {
  std::mt19937 random(2);
  const std::vector<float> logits = random_logits(random, 100);
  SamplingOptions options = mirostat(50.0f, 0.1f);
  options.top_k = 1;
  options.top_p = 0.1f;
  const std::vector<float> found = Sampler(options, 100).probabilities(logits);
  EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](float probability) { return probability > 0.0f; }));
}

TEST(Mirostat, survives_logits_without_a_largest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Sampler sampler(mirostat(2.0f, 1.0f), 3);
  EXPECT_EQ(sampler.sample(std::vector<float>{NAN, kInfinity, 1.0f}), 1);
  const int32_t any = sampler.sample(std::vector<float>{NAN, NAN, NAN});
  EXPECT_TRUE(any >= 0 && any < 3);
  EXPECT_EQ(sampler.sample(std::vector<float>{-kInfinity, 1.0f, -kInfinity}), 1);
}

}  // namespace
}  // namespace mote
