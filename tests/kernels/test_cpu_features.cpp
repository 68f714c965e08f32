#include "kernels/machine/cpu_features.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mote::test {
namespace {

constexpr CpuFeatures kX86 = CpuFeatures(CpuFeature::kAvx2) | CpuFeature::kAvxVnni | CpuFeature::kAvx512 |
                             CpuFeature::kAvx512Vnni | CpuFeature::kAmx;
constexpr CpuFeatures kArm = CpuFeatures(CpuFeature::kDotprod) | CpuFeature::kI8mm | CpuFeature::kSme;

TEST(CpuFeatures, names_are_read_and_printed) {
  EXPECT_EQ(0u, parse_cpu_features("")->bits);
  EXPECT_EQ(0u, parse_cpu_features("none")->bits);
  EXPECT_EQ("none", to_string(CpuFeatures()));
  EXPECT_EQ("avx2+avx512vnni", to_string(*parse_cpu_features("avx512vnni,avx2")));
  EXPECT_EQ((kX86 | kArm).bits, parse_cpu_features("avx2,avxvnni,avx512,avx512vnni,amx,dotprod,i8mm,sme")->bits);
  EXPECT_EQ(kX86.bits, parse_cpu_features(to_string(kX86))->bits);
}

TEST(CpuFeatures, what_is_no_feature_is_refused_with_the_names_that_are) {
  for (const char* text : {"sse9", "avx2,avx", "AVX2", " avx2", "avx2,,amx", ","}) {
    const Result<CpuFeatures> features = parse_cpu_features(text);
    ASSERT_FALSE(features.ok()) << text;
    EXPECT_EQ(Code::kInvalidArgument, features.status().code());
    EXPECT_NE(std::string::npos, features.status().message().find("MOTE_CPU_FEATURES holds '")) << text;
    EXPECT_NE(std::string::npos, features.status().message().find("none, avx2, avxvnni"))
        << features.status().message();
  }
}

TEST(CpuFeatures, sets_hold_their_parts) {
  EXPECT_TRUE(kX86.has_all(CpuFeature::kAmx));
  EXPECT_TRUE(kX86.has_all(CpuFeatures()));
  EXPECT_FALSE(CpuFeatures(CpuFeature::kAvx2).has_all(kX86));
  EXPECT_EQ(0u, (kX86 & kArm).bits);
}

TEST(CpuFeatures, detected_ones_belong_to_this_architecture_and_imply_the_smaller_ones) {
  const CpuFeatures found = detect_cpu_features();
#if defined(__x86_64__)
  EXPECT_EQ(0u, (found & kArm).bits);
  EXPECT_EQ(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), found.has_all(CpuFeature::kAvx2));
  EXPECT_EQ(
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"),
      found.has_all(CpuFeature::kAvx512));
  EXPECT_EQ(__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl"),
            found.has_all(CpuFeature::kAvx512Vnni));
#elif defined(__aarch64__)
  EXPECT_EQ(0u, (found & kX86).bits);
#endif
  EXPECT_TRUE(!found.has_all(CpuFeature::kAvx512Vnni) || found.has_all(CpuFeature::kAvx512));
  EXPECT_TRUE(!found.has_all(CpuFeature::kAvx512) || found.has_all(CpuFeature::kAvx2));
  EXPECT_TRUE(!found.has_all(CpuFeature::kAmx) || found.has_all(CpuFeature::kAvx512Vnni));
  EXPECT_TRUE(!found.has_all(CpuFeature::kOneStream) || found.has_all(CpuFeature::kAvx2));
  EXPECT_TRUE(!found.has_all(CpuFeature::kSme) || found.has_all(CpuFeature::kI8mm));
  EXPECT_TRUE(!found.has_all(CpuFeature::kI8mm) || found.has_all(CpuFeature::kDotprod));
}

// An emulator's CPU is known: tests/kernels/CMakeLists.txt says what must be found on it.
TEST(CpuFeatures, detected_ones_are_those_of_the_emulated_cpu) {
  const char* expected = std::getenv("MOTE_TEST_CPU_FEATURES");
  if (expected == nullptr) GTEST_SKIP() << "not on an emulated CPU";
  EXPECT_EQ(expected, to_string(detect_cpu_features()));
}

}  // namespace
}  // namespace mote::test
