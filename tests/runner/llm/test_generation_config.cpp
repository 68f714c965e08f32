#include <gtest/gtest.h>

#include "runner/llm/generation_config.h"

namespace mote {
namespace {

TEST(GenerationConfig, what_the_file_leaves_out_is_as_in_transformers) {
  const auto config = parse_generation_config("{}", {});
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->sampling.do_sample);
  EXPECT_EQ(config->sampling.temperature, 1.0f);
  EXPECT_EQ(config->sampling.top_k, 50);
  EXPECT_EQ(config->sampling.top_p, 1.0f);
  EXPECT_EQ(config->max_new_tokens, 0);
}

TEST(GenerationConfig, reads_fields_and_makes_eos_a_list) {
  const std::vector<int32_t> eos = {2, 0};
  const auto config = parse_generation_config(
      R"({"do_sample": true, "temperature": 0.7, "top_k": null, "top_p": 0.9, "eos_token_id": 2, "max_new_tokens": 16})", eos);
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->sampling.do_sample);
  EXPECT_EQ(config->sampling.temperature, 0.7f);
  EXPECT_EQ(config->sampling.top_k, 50);
  EXPECT_EQ(config->max_new_tokens, 16);
  EXPECT_NE(config->json.find(R"("eos_token_id":[2,0])"), std::string::npos);
}

TEST(GenerationConfig, refuses_other_json) {
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{"), std::string(R"({"temperature": "hot"})"),
                                  std::string(R"({"top_k": 1.5})"), std::string(R"({"top_k": -2})"), std::string(R"({"do_sample": 1})"),
                                  std::string(R"({"max_new_tokens": 1e20})"),
                                  "{\"a\": " + std::string(5000, '[') + std::string(5000, ']') + "}"}) {
    const auto config = parse_generation_config(text, {});
    ASSERT_FALSE(config.ok()) << text.substr(0, 40);
    EXPECT_EQ(config.status().code(), Code::kInvalidProgram);
  }
}

}  // namespace
}  // namespace mote
