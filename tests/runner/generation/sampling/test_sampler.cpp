// That the filters are those of transformers is tested against it in tests/llm_runner/test_sampling.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/op.h"
#include "runner/generation/sampling/sampler.h"

namespace mote {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Sampler, greedy_takes_the_lowest_id_among_equals) {
  Sampler sampler({}, 4);
  EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 3.0f, 3.0f, 2.0f}), 1);
}

TEST(Sampler, temperature_0_takes_the_largest_logit_whatever_else_is_asked_for) {
  SamplingOptions options;
  options.do_sample = true;
  options.temperature = 0.0f;
  options.xtc_probability = 1.0f;
  ASSERT_TRUE(check_sampling(options, 4).ok());
  Sampler sampler(options, 4);
  const std::vector<float> logits{1.0f, 1.1f, 1.1f, 1.0f};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sampler.sample(logits), 1);
  EXPECT_EQ(sampler.probabilities(logits), (std::vector<float>{0.0f, 1.0f, 0.0f, 0.0f}));
}

TEST(Sampler, survives_logits_that_are_not_numbers) {
  for (const bool do_sample : {false, true}) {
    SamplingOptions options;
    options.do_sample = do_sample;
    options.top_k = 2;
    options.top_p = 0.9f;
    options.min_p = 0.1f;
    Sampler sampler(options, 3);
    EXPECT_EQ(sampler.sample(std::vector<float>{NAN, 1.0f, -kInfinity}), 1);
    EXPECT_EQ(sampler.sample(std::vector<float>{0.0f, kInfinity, 1.0f}), 1);
    const int32_t any = sampler.sample(std::vector<float>{NAN, NAN, NAN});
    EXPECT_GE(any, 0);
    EXPECT_LT(any, 3);
  }
}

// A mask does what -infinity in the place of the other logits would, with and without maxima.
// The count largest, of equal ones the first.
std::vector<LargestElement> largest_of(std::span<const float> logits, size_t count) {
  std::vector<LargestElement> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float value = std::isnan(logits[i]) ? -std::numeric_limits<float>::infinity() : logits[i];
    all.push_back({value, static_cast<int32_t>(i)});
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &LargestElement::value);
  all.resize(count);
  return all;
}

TEST(Sampler, draws_the_same_of_the_largest_logits_as_of_all) {
  SamplingOptions options;
  options.do_sample = true;
  options.seed = 5;
  options.top_k = 12;
  options.top_p = 0.9f;
  options.min_p = 0.01f;
  options.xtc_probability = 0.3f;
  for (const float temperature : {0.0f, 0.7f, 3.0f}) {
    options.temperature = temperature;
    Sampler of_all(options, 500), of_largest(options, 500);
    ASSERT_EQ(temperature == 0.0f ? 1u : 13u, of_largest.num_largest());
    for (uint32_t step = 0; step < 200; ++step) {
      std::vector<float> logits(500);
      for (uint32_t i = 0; i < 500; ++i)
        logits[i] = static_cast<float>((i * 7919u + step * 104729u) % 997u) / (step % 2 == 0 ? 100.0f : 30.0f);
      if (step % 5 == 0) logits[step] = std::numeric_limits<float>::quiet_NaN();
      const auto found = of_largest.sample_largest(largest_of(logits, of_largest.num_largest()));
      ASSERT_EQ(of_all.sample(logits), found.has_value() ? *found : of_largest.sample(logits));
    }
  }
}

TEST(Sampler, needs_all_logits_where_the_largest_do_not_tell) {
  SamplingOptions options;
  options.do_sample = true;
  options.top_k = 2;
  Sampler sampler(options, 10);
  const auto tells = [&](std::vector<LargestElement> largest) { return sampler.sample_largest(largest).has_value(); };
  EXPECT_TRUE(tells({{3, 1}, {2, 0}, {1, 5}}));
  EXPECT_TRUE(tells({{3, 1}, {3, 4}, {1, 5}}));
  EXPECT_FALSE(tells({{3, 1}, {2, 0}, {2, 5}}));  // which is as likely as the second
  EXPECT_FALSE(tells({{kInfinity, 1}, {2, 0}, {1, 5}}));
  EXPECT_FALSE(tells({{3, 1}, {-kInfinity, 0}, {-kInfinity, 5}}));
  EXPECT_FALSE(tells({{3, 1}, {2, 0}}));
  EXPECT_FALSE(tells({}));
  const auto needs_all = [](const auto& change) {
    SamplingOptions changed;
    changed.do_sample = true;
    changed.top_k = 2;
    change(changed);
    return Sampler(changed, 70).num_largest() == 0;
  };
  EXPECT_FALSE(needs_all([](SamplingOptions&) {}));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.top_k = 0; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.top_k = 65; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.top_n_sigma = 1.0f; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.mirostat = Mirostat::kVersion2; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.repetition_penalty = 1.1f; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.frequency_penalty = 1.0f; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.dry_multiplier = 1.0f; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.no_repeat_ngram_size = 2; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.min_new_tokens = 1; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.sequence_bias = {{{3}, 1.0f}}; }));
  EXPECT_TRUE(needs_all([](SamplingOptions& o) { o.sequence_bias = {{{3, 4}, 1.0f}}; }));
}

TEST(Sampler, draws_only_what_is_allowed) {
  constexpr int32_t kVocabulary = 10'000;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 60; ++round) {
    std::vector<float> logits(kVocabulary);
    for (float& logit : logits) logit = normal(random);
    std::vector<float> maxima;
    for (size_t i = 0; i < logits.size(); i += kMaximaBlock) {
      const size_t end = std::min<size_t>(logits.size(), i + kMaximaBlock);
      maxima.push_back(
          *std::max_element(logits.begin() + static_cast<ptrdiff_t>(i), logits.begin() + static_cast<ptrdiff_t>(end)));
    }
    std::vector<uint32_t> mask((kVocabulary + 31) / 32);
    std::vector<float> masked(logits.size(), -kInfinity);
    const int num_allowed = round % 3 == 0 ? 1 : round % 3 == 1 ? 20 : 4000;
    for (int i = 0; i < num_allowed; ++i) {
      const auto id = static_cast<uint32_t>(random() % kVocabulary);
      mask[id / 32] |= 1U << (id % 32);
      masked[id] = logits[id];
    }
    SamplingOptions options;
    options.do_sample = round % 2 == 0;
    options.seed = static_cast<uint64_t>(round);
    options.top_k = round % 5 == 0 ? 50 : 0;
    options.top_p = round % 7 == 0 ? 0.9f : 1.0f;
    options.repetition_penalty = round % 4 == 0 ? 1.5f : 1.0f;
    Sampler constrained(options, kVocabulary);
    Sampler plain(options, kVocabulary);
    constrained.allow_only(mask);
    for (int i = 0; i < 5; ++i) {
      const int32_t id = constrained.sample(logits, maxima);
      EXPECT_EQ(id, plain.sample(masked)) << "round " << round;
      EXPECT_NE(mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1U, 0U);
      constrained.observe(id, true);
      plain.observe(id, true);
    }
  }
}

TEST(Sampler, what_is_allowed_wins_over_bans) {
  std::vector<uint32_t> mask(2, 0);
  mask[1] = 1U << 5;
  for (const bool do_sample : {false, true}) {
    SamplingOptions options;
    options.do_sample = do_sample;
    options.sequence_bias = {{{37}, -kInfinity}};
    Sampler sampler(options, 64);
    sampler.allow_only(mask);
    EXPECT_EQ(sampler.sample(std::vector<float>(64, 1.0f)), 37);
  }
}

TEST(Sampler, the_seed_decides) {
  const std::vector<float> logits(100, 0.0f);
  const auto draw = [&](uint64_t seed) {
    SamplingOptions options;
    options.do_sample = true;
    options.seed = seed;
    Sampler sampler(options, 100);
    std::vector<int32_t> ids;
    for (int i = 0; i < 32; ++i) ids.push_back(sampler.sample(logits));
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, draws_as_often_as_the_probability_says) {
  SamplingOptions options;
  options.do_sample = true;
  Sampler sampler(options, 3);
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  int counts[3] = {};
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.sample(logits)];
  EXPECT_NEAR(counts[0], 0.5 * kDraws, 1000);
  EXPECT_NEAR(counts[1], 0.3 * kDraws, 1000);
  EXPECT_NEAR(counts[2], 0.2 * kDraws, 1000);
}

TEST(Sampler, the_penalty_counts_a_token_once) {
  SamplingOptions options;
  options.repetition_penalty = 2.0f;
  Sampler sampler(options, 3);
  for (int i = 0; i < 5; ++i) sampler.observe(1);
  sampler.observe(-1);
  sampler.observe(3);
  EXPECT_EQ(sampler.sample(std::vector<float>{0.9f, 2.0f, 0.0f}), 1);  // 2.0 / 2 is still the largest
  EXPECT_EQ(sampler.sample(std::vector<float>{1.1f, 2.0f, 0.0f}), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1.5f, -1.0f, -9.0f}), 0);  // -1.0 * 2
}

TEST(Sampler, top_p_of_many_equal_logits_keeps_the_lowest_ids) {
  SamplingOptions options;
  options.do_sample = true;
  options.top_p = 0.5f;
  Sampler sampler(options, 4096);
  const std::vector<float> probabilities = sampler.probabilities(std::vector<float>(4096, 1.0f));
  EXPECT_GT(probabilities[2047], 0.0f);
  EXPECT_EQ(probabilities[2048], 0.0f);
}

// What transformers' processors leave, by sorting everything.
std::vector<double> sorted_reference(std::vector<double> logits, const std::vector<int32_t>& seen,
                                     const SamplingOptions& options) {
  for (const int32_t id : seen) {
    double& logit = logits[static_cast<size_t>(id)];
    logit = logit < 0 ? logit * static_cast<double>(options.repetition_penalty)
                      : logit / static_cast<double>(options.repetition_penalty);
  }
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  size_t kept = order.size();
  if (options.top_k > 0) kept = std::min(kept, static_cast<size_t>(options.top_k));
  while (kept < order.size() && logits[order[kept]] == logits[order[kept - 1]]) ++kept;
  const auto weight = [&](size_t place) {
    return std::exp((logits[order[place]] - logits[order[0]]) / static_cast<double>(options.temperature));
  };
  double total = 0, mass = 0;
  for (size_t i = 0; i < kept; ++i) total += weight(i);
  std::vector<double> result(logits.size(), 0.0);
  for (size_t i = 0; i < kept; mass += weight(i), ++i) {
    const bool in_top_p = options.top_p >= 1.0f || i == 0 || mass < static_cast<double>(options.top_p) * total;
    if (in_top_p && weight(i) >= static_cast<double>(options.min_p)) result[order[i]] = weight(i);
  }
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& value : result) value /= sum;
  return result;
}

SamplingOptions filters(bool do_sample, int32_t top_k, float top_p, float min_p, float penalty) {
  SamplingOptions options;
  options.do_sample = do_sample;
  options.seed = 1;
  options.temperature = 0.7f;
  options.top_k = top_k;
  options.top_p = top_p;
  options.min_p = min_p;
  options.repetition_penalty = penalty;
  return options;
}

constexpr int32_t kVocabulary = 3 * 4096 + 77;

std::vector<float> normal_logits(uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) logit = normal(generator);
  return logits;
}

TEST(Sampler, a_large_vocabulary_is_filtered_as_if_it_were_sorted) {
  const std::vector<float> logits = normal_logits(3);
  const std::vector<double> exact(logits.begin(), logits.end());
  const std::vector<int32_t> seen = {5, 4095, 4096, 9000, kVocabulary - 1};
  for (const int32_t top_k : {0, 1, 50, 5000}) {
    for (const float top_p : {1.0f, 0.9f, 0.1f}) {
      for (const float min_p : {0.0f, 0.02f}) {
        for (const float penalty : {1.0f, 1.3f}) {
          const SamplingOptions options = filters(true, top_k, top_p, min_p, penalty);
          Sampler sampler(options, kVocabulary);
          for (const int32_t id : seen) sampler.observe(id);
          const std::vector<float> found = sampler.probabilities(logits);
          const std::vector<double> expected = sorted_reference(exact, seen, options);
          double difference = 0;
          for (size_t i = 0; i < logits.size(); ++i)
            difference += std::fabs(static_cast<double>(found[i]) - expected[i]);
          EXPECT_LT(difference, 1e-3) << top_k << " " << top_p << " " << min_p << " " << penalty;
          const int32_t id = sampler.sample(logits);
          EXPECT_GT(found[static_cast<size_t>(id)], 0.0f);
        }
      }
    }
  }
}

std::vector<float> maxima_of(const std::vector<float>& logits) {
  std::vector<float> maxima(static_cast<size_t>(num_maxima(static_cast<int64_t>(logits.size()))), -kInfinity);
  for (size_t i = 0; i < logits.size(); ++i) {
    float& largest = maxima[i / kMaximaBlock];
    if (logits[i] > largest) largest = logits[i];
  }
  return maxima;
}

TEST(Sampler, maxima_change_nothing) {
  std::vector<float> logits = normal_logits(5);
  for (float& logit : logits) logit = std::round(logit * 8) / 8;  // with ties
  for (size_t i = 640; i < 704; ++i) logits[i] = NAN;
  logits[9001] = -kInfinity;
  const auto is_same = [&](const SamplingOptions& options) {
    Sampler plain(options, kVocabulary), informed(options, kVocabulary);
    for (const int32_t id : {5, 4095, 4096, 9000, kVocabulary - 1}) {
      plain.observe(id);
      informed.observe(id);
    }
    const std::vector<float> maxima = maxima_of(logits);
    EXPECT_EQ(plain.probabilities(logits), informed.probabilities(logits, maxima));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(plain.sample(logits), informed.sample(logits, maxima));
  };
  for (const bool do_sample : {false, true}) {
    for (const int32_t top_k : {0, 1, 50, 150, 5000}) {
      for (const float top_p : {1.0f, 0.9f}) {
        for (const float penalty : {1.0f, 0.5f, 1.3f}) is_same(filters(do_sample, top_k, top_p, 0.01f, penalty));
      }
    }
  }
}

TEST(Sampler, maxima_of_other_logits_are_left_out) {
  Sampler sampler({}, 100);
  std::vector<float> logits(200, 0.0f);
  logits[90] = 1.0f;
  logits[150] = 2.0f;  // past the vocabulary
  EXPECT_EQ(sampler.sample(logits, maxima_of(logits)), 90);
  EXPECT_EQ(sampler.sample(std::span(logits).first(100), std::vector<float>{1.0f}), 90);
}

TEST(Sampler, greedy_of_nothing_but_nan_is_the_first_id) {
  const std::vector<float> logits(130, NAN);
  EXPECT_EQ(Sampler({}, 130).sample(logits, maxima_of(logits)), 0);
}

TEST(Sampler, draws_from_a_large_vocabulary_as_the_probabilities_say) {
  std::vector<float> logits(20000, -6.0f);
  logits[100] = logits[12000] = logits[19999] = 6.0f;  // together 0.96 of the mass
  logits[7] = NAN;
  SamplingOptions options;
  options.do_sample = true;
  Sampler sampler(options, 20000);
  const std::vector<float> probabilities = sampler.probabilities(logits);
  int counts[3] = {}, others = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const int32_t id = sampler.sample(logits);
    ASSERT_NE(7, id);
    ++(id == 100 ? counts[0] : id == 12000 ? counts[1] : id == 19999 ? counts[2] : others);
  }
  for (const int count : counts) EXPECT_NEAR(count, static_cast<double>(probabilities[100]) * kDraws, 120);
  EXPECT_GT(others, 0);
}

TEST(Logprobs, are_log_softmax) {
  const std::vector<float> logits = {1.0f, 3.0f, -2.0f, 3.0f, NAN, -kInfinity};
  const double total = log_sum_exp(logits);
  EXPECT_NEAR(total, std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(-2.0)), 1e-6);
  const auto top = Sampler({}, 6).likeliest(logits, maxima_of(logits), total, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 3);
  EXPECT_EQ(top[2].id, 0);
  EXPECT_NEAR(static_cast<double>(top[2].logprob), 1.0 - total, 1e-6);
  EXPECT_EQ(log_probability(NAN, total), -kInfinity);
  EXPECT_EQ(log_probability(-kInfinity, total), -kInfinity);
  EXPECT_EQ(log_probability(kInfinity, log_sum_exp(std::vector<float>{0.0f, kInfinity})), 0.0f);
  EXPECT_EQ(log_probability(0.0f, static_cast<double>(kInfinity)), -kInfinity);
  EXPECT_EQ(log_probability(-kInfinity, log_sum_exp(std::vector<float>{-kInfinity})), -kInfinity);
  EXPECT_TRUE(Sampler({}, 6).likeliest(logits, {}, total, 0).empty());
}

TEST(Sampler, options_out_of_range_are_named) {
  const auto message = [](auto change) {
    SamplingOptions options;
    change(options);
    const Status status = check_sampling(options, 100);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(message([](auto& o) { o.temperature = -1.0f; }),
            "temperature = -1: must be a number, 0 or more (0: always the likeliest)");
  EXPECT_NE(message([](auto& o) { o.temperature = NAN; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.top_k = -1; }).find("top_k = -1"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.top_p = 1.5f; }).find("top_p = 1.5"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.min_p = -0.5f; }).find("min_p = -0.5"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.repetition_penalty = 0.0f; }).find("repetition_penalty"), std::string::npos);
}

}  // namespace
}  // namespace mote
