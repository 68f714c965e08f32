#include <gtest/gtest.h>

#include <limits>

#include "runner/generation/defaults.h"

namespace mote {
namespace {

TEST(GenerationDefaults, what_the_file_leaves_out_is_as_in_transformers) {
  const auto config = read_generation_defaults("{}", {});
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->sampling.do_sample);
  EXPECT_EQ(config->sampling.temperature, 1.0f);
  EXPECT_EQ(config->sampling.top_k, 50);
  EXPECT_EQ(config->sampling.top_p, 1.0f);
  EXPECT_EQ(config->max_new_tokens, 0);
}

TEST(GenerationDefaults, reads_fields) {
  const std::vector<int32_t> eos = {2, 0};
  const auto config = read_generation_defaults(
      R"({"do_sample": true, "temperature": 0.7, "top_k": null, "top_p": 0.9, "eos_token_id": 2, "max_new_tokens": 16})",
      eos);
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->sampling.do_sample);
  EXPECT_EQ(config->sampling.temperature, 0.7f);
  EXPECT_EQ(config->sampling.top_k, 50);
  EXPECT_EQ(config->max_new_tokens, 16);
}

TEST(GenerationDefaults, bans_are_biases) {
  const std::vector<int32_t> eos = {2};
  const auto config = read_generation_defaults(
      R"({"sequence_bias": [[[5, 6], -1.5]], "bad_words_ids": [[7, 8], [2]], "suppress_tokens": [9], "typical_p": 0.5,
          "no_repeat_ngram_size": 3, "min_new_tokens": 4})",
      eos);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const SamplingOptions& sampling = config->sampling;
  ASSERT_EQ(sampling.sequence_bias.size(), 3u);  // an end-of-sequence token is no bad word
  EXPECT_EQ(sampling.sequence_bias[0].ids, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(sampling.sequence_bias[0].bias, -1.5f);
  EXPECT_EQ(sampling.sequence_bias[1].ids, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(sampling.sequence_bias[1].bias, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(sampling.sequence_bias[2].ids, std::vector<int32_t>{9});
  EXPECT_EQ(sampling.typical_p, 0.5f);
  EXPECT_EQ(sampling.no_repeat_ngram_size, 3);
  EXPECT_EQ(sampling.min_new_tokens, 4);
}

TEST(GenerationDefaults, refuses_other_json) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string(R"({"temperature": "hot"})"),
        std::string(R"({"top_k": 1.5})"), std::string(R"({"top_k": -2})"), std::string(R"({"do_sample": 1})"),
        std::string(R"({"max_new_tokens": 1e20})"), std::string(R"({"bad_words_ids": [3]})"),
        std::string(R"({"bad_words_ids": [[]]})"), std::string(R"({"suppress_tokens": [1.5]})"),
        std::string(R"({"suppress_tokens": 4})"), std::string(R"({"suppress_tokens": [99999999999]})"),
        std::string(R"({"sequence_bias": [[[1]]]})"), std::string(R"({"sequence_bias": [[1, 2.0]]})"),
        "{\"a\": " + std::string(5000, '[') + std::string(5000, ']') + "}"}) {
    const auto config = read_generation_defaults(text, {});
    ASSERT_FALSE(config.ok()) << text.substr(0, 40);
    EXPECT_EQ(config.status().code(), Code::kInvalidProgram);
  }
}

}  // namespace
}  // namespace mote
