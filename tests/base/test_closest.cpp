#include <gtest/gtest.h>

#include <array>

#include "base/closest.h"

namespace mote {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"temperature", "top_p", "top_k", "max_new_tokens", "seed"};

TEST(Closest, finds_what_was_mistyped) {
  EXPECT_EQ(closest("temprature", kNames), "temperature") << "a letter is missing";
  EXPECT_EQ(closest("temperatuer", kNames), "temperature") << "two are swapped";
  EXPECT_EQ(closest("--Max-New-Token", kNames), "max_new_tokens") << "dashes and case do not count";
  EXPECT_EQ(closest("seeed", kNames), "seed");
  EXPECT_EQ(closest("max", kNames), "max_new_tokens") << "its beginning";
}

TEST(Closest, finds_nothing_for_what_is_far) {
  EXPECT_EQ(closest("", kNames), "");
  EXPECT_EQ(closest("x", kNames), "");
  EXPECT_EQ(closest("draft", kNames), "");
  EXPECT_EQ(closest(std::string(100, 'a'), kNames), "");
  EXPECT_EQ(closest("seed", {}), "");
  EXPECT_EQ(did_you_mean("sed", kNames), ": did you mean 'seed'?");
  EXPECT_EQ(did_you_mean("draft", kNames), "");
}

}  // namespace
}  // namespace mote
