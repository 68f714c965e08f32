#include <gtest/gtest.h>

#include <limits>

#include "runner/generation/defaults.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

TEST(GenerationDefaults, what_the_file_leaves_out_is_as_in_transformers) {
  const auto config = read_generation_defaults("{}");
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->sampling.do_sample);
  EXPECT_EQ(config->sampling.temperature, 1.0f);
  EXPECT_EQ(config->sampling.top_k, 50);
  EXPECT_EQ(config->sampling.top_p, 1.0f);
  EXPECT_EQ(config->max_new_tokens, 0);
}

TEST(GenerationDefaults, reads_fields) {
  const auto config = read_generation_defaults(
      R"({"do_sample": true, "temperature": 0.7, "top_k": null, "top_p": 0.9, "eos_token_id": 2, "max_new_tokens": 16})");
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->sampling.do_sample);
  EXPECT_EQ(config->sampling.temperature, 0.7f);
  EXPECT_EQ(config->sampling.top_k, 50);
  EXPECT_EQ(config->sampling.top_p, 0.9f);
  EXPECT_EQ(config->max_new_tokens, 16);
}

TEST(GenerationDefaults, reads_every_option_of_a_generation_and_nothing_else) {
  const auto config = read_generation_defaults(
      R"({"xtc_probability": 0.5, "dry_multiplier": 0.8, "dry_sequence_breakers": [3], "stop_strings": ["a", "b"],
          "max_time": 2.5, "speculative": "lookup", "top_logprobs": 5, "skip_special_tokens": false, "num_beams": "x",
          "threads": -1, "mmap": 7, "transformers_version": "4.56"})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->sampling.xtc_probability, 0.5f);
  EXPECT_EQ(config->sampling.dry_multiplier, 0.8f);
  EXPECT_EQ(config->sampling.dry_sequence_breakers, std::vector<int32_t>{3});
  EXPECT_EQ(config->stop_strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config->max_time, 2.5);
  EXPECT_EQ(config->speculation.speculative, SpeculationMode::kLookup);
  EXPECT_EQ(config->top_logprobs, 5);
  EXPECT_FALSE(config->skip_special_tokens);
}

constexpr const char* kBans =
    R"({"sequence_bias": [[[5, 6], -1.5]], "bad_words_ids": [[7, 8], [2]], "suppress_tokens": [9], "typical_p": 0.5,
        "no_repeat_ngram_size": 3, "min_new_tokens": 4})";

TEST(GenerationDefaults, bans_are_biases) {
  test::ProgramBuilder builder = test::tiny_program();
  builder.program.eos_token_ids = {2};
  builder.program.generation_config = kBans;
  const test::TinyFile file(builder);
  const auto model = Model::open(file.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto config = generation_defaults(**model);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const SamplingOptions& sampling = (*config)->sampling;
  ASSERT_EQ(sampling.sequence_bias.size(), 3u);  // an end-of-sequence token is no bad word
  EXPECT_EQ(sampling.sequence_bias[0].ids, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(sampling.sequence_bias[0].bias, -1.5f);
  EXPECT_EQ(sampling.sequence_bias[1].ids, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(sampling.sequence_bias[1].bias, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(sampling.sequence_bias[2].ids, std::vector<int32_t>{9});
  EXPECT_EQ(sampling.typical_p, 0.5f);
  EXPECT_EQ(sampling.no_repeat_ngram_size, 3);
  EXPECT_EQ(sampling.min_new_tokens, 4);
  EXPECT_EQ(read_generation_defaults(kBans)->sampling.sequence_bias.size(), 4u);  // no model, so no such token is known
}

TEST(GenerationDefaults, of_a_model_are_refused_with_the_name_of_its_file) {
  test::ProgramBuilder builder = test::tiny_program();
  builder.program.generation_config = R"({"top_p": 2})";
  const test::TinyFile file(builder);
  const auto model = Model::open(file.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Status status = generation_defaults(**model).status();
  EXPECT_EQ(status.code(), Code::kInvalidProgram);
  EXPECT_EQ(status.message(), file.path() + ": generation_config: top_p = 2: must be a number, 0..1 (1: off)");
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
    const auto config = read_generation_defaults(text);
    ASSERT_FALSE(config.ok()) << text.substr(0, 40);
    EXPECT_EQ(config.status().code(), Code::kInvalidProgram);
  }
}

}  // namespace
}  // namespace mote
