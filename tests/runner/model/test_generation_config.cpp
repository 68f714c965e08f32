#include <gtest/gtest.h>

#include <vector>

#include "runner/model/generation_config.h"

namespace mote {
namespace {

TEST(GenerationConfig, eos_becomes_a_list) {
  const std::vector<int32_t> eos = {2, 0};
  EXPECT_EQ(*generation_config_with_eos(R"({"top_k": null, "eos_token_id": 2})", eos),
            R"({"top_k":null,"eos_token_id":[2,0]})");
  EXPECT_EQ(*generation_config_with_eos("{}", eos), R"({"eos_token_id":[2,0]})");
}

TEST(GenerationConfig, refuses_what_is_no_object) {
  for (const char* text : {"", "[]", "{", "3"}) {
    const auto config = generation_config_with_eos(text, {});
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().code(), Code::kInvalidProgram);
  }
}

}  // namespace
}  // namespace mote
