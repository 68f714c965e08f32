// That the filters are those of transformers is tested against it in tests/llm_runner/test_sampling.py.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runner/llm/sampler.h"

namespace mote {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Sampler, greedy_takes_the_lowest_id_among_equals) {
  Sampler sampler({}, 4);
  EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 3.0f, 3.0f, 2.0f}), 1);
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
  EXPECT_EQ(sampler.sample(std::vector<float>{0.9f, 2.0f, 0.0f}), 1);   // 2.0 / 2 is still the largest
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

TEST(Sampler, options_out_of_range_are_named) {
  const auto message = [](auto change) {
    SamplingOptions options;
    change(options);
    const Status status = check_sampling(options);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_NE(message([](auto& o) { o.temperature = 0.0f; }).find("temperature = 0"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.temperature = NAN; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.top_k = -1; }).find("top_k = -1"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.top_p = 1.5f; }).find("top_p = 1.5"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.min_p = -0.5f; }).find("min_p = -0.5"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.repetition_penalty = 0.0f; }).find("repetition_penalty"), std::string::npos);
}

}  // namespace
}  // namespace mote
