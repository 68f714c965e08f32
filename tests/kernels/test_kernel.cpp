// Selection by role, features, tokens, format and rank. Nothing here but the children reads the environment, which a
// process reads once.
#include "kernels/kernel.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace mote::test {
namespace {

constexpr CpuFeatures kTwo = CpuFeatures(CpuFeature::kAvx2) | CpuFeature::kAvxVnni;
constexpr WeightKind kFloat = {};
constexpr WeightKind kFourBits = {DType::kInt8, 4, 32, {}};

bool takes_tiles(const WeightKind& format) { return format.bits != 0; }

MOTE_REGISTER_KERNEL(.name = "plain", .role = "test", .rank = 0);
MOTE_REGISTER_KERNEL(.name = "fast", .role = "test", .needs = CpuFeature::kAvx2, .rank = 10);
MOTE_REGISTER_KERNEL(.name = "faster", .role = "test", .needs = kTwo, .rank = 20);
MOTE_REGISTER_KERNEL(.name = "one_token", .role = "test", .needs = CpuFeature::kAvx2, .rank = 30, .max_tokens = 1);
MOTE_REGISTER_KERNEL(.name = "many_tokens", .role = "test", .needs = CpuFeature::kAmx, .rank = 40, .min_tokens = 64);
MOTE_REGISTER_KERNEL(.name = "tiles", .role = "test.tiles", .rank = 0, .takes = takes_tiles);
MOTE_REGISTER_KERNEL(.name = "other", .role = "test.other", .rank = 99);

std::string_view found(std::string_view features, int64_t tokens, std::string_view pinned = "") {
  const Result<const Kernel*> kernel = find_kernel("test", kFloat, tokens, {*parse_cpu_features(features), pinned});
  return kernel.ok() ? (*kernel)->name : kernel.status().message();
}

TEST(Kernel, the_highest_rank_that_the_features_and_the_tokens_allow) {
  EXPECT_EQ("plain", found("none", 5));
  EXPECT_EQ("plain", found("avxvnni,dotprod", 5));
  EXPECT_EQ("fast", found("avx2", 5));
  EXPECT_EQ("faster", found("avx2,avxvnni", 5));
  EXPECT_EQ("one_token", found("avx2,avxvnni", 1));
  EXPECT_EQ("faster", found("avx2,avxvnni,amx", 63));
  EXPECT_EQ("many_tokens", found("avx2,avxvnni,amx", 64));
}

TEST(Kernel, a_pinned_one_goes_before_higher_ranks_where_it_fits) {
  EXPECT_EQ("plain", found("avx2,avxvnni", 1, "plain"));
  EXPECT_EQ("fast", found("avx2,avxvnni", 1, "other,fast"));
  EXPECT_EQ("faster", found("avx2,avxvnni", 5, "one_token"));
  EXPECT_EQ("faster", found("avx2,avxvnni", 5, "fas"));
}

TEST(Kernel, none_that_fits_is_an_error_that_says_for_what) {
  const KernelRules rules = {kTwo, ""};
  ASSERT_TRUE(find_kernel("test.tiles", kFourBits, 1, rules).ok());
  const Result<const Kernel*> kernel = find_kernel("test.tiles", kFloat, 3, rules);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(Code::kUnsupportedOp, kernel.status().code());
  EXPECT_EQ("no kernel of this build does test.tiles for float32 and 3 tokens", kernel.status().message());
  EXPECT_NE(std::string::npos,
            find_kernel("nothing", kFourBits, 3, rules).status().message().find("4 bits in groups of 32"));
}

TEST(Kernel, pins_must_exist_and_run_here) {
  EXPECT_TRUE(check_rules({CpuFeatures(), "plain,tiles"}).ok());
  EXPECT_TRUE(check_rules({CpuFeatures(), ""}).ok());
  const Status unknown = check_rules({kTwo, "plain,slow"});
  EXPECT_EQ(Code::kInvalidArgument, unknown.code());
  EXPECT_NE(std::string::npos, unknown.message().find("'slow', which is no kernel of this build"));
  const Status missing = check_rules({CpuFeature::kAvx2, "faster"});
  EXPECT_EQ(Code::kInvalidArgument, missing.code());
  EXPECT_NE(std::string::npos, missing.message().find("'faster', which needs avx2+avxvnni: this CPU offers avx2"));
}

TEST(Kernel, the_list_is_ordered_by_role_and_rank) {
  const std::vector<const Kernel*> kernels = all_kernels();
  for (size_t i = 1; i < kernels.size(); ++i) {
    EXPECT_LE(kernels[i - 1]->role, kernels[i]->role);
    EXPECT_TRUE(kernels[i - 1]->role != kernels[i]->role || kernels[i - 1]->rank >= kernels[i]->rank);
  }
}

TEST(Kernel, names_are_unique_so_that_a_pin_means_one) {
  const std::vector<const Kernel*> kernels = all_kernels();
  for (const Kernel* a : kernels) {
    for (const Kernel* b : kernels) EXPECT_TRUE(a == b || a->name != b->name) << a->name;
  }
}

// In a child, whose environment is its own: prints what was selected or the error.
[[noreturn]] void select_with(const char* features, const char* pinned) {
  setenv("MOTE_CPU_FEATURES", features, 1);
  setenv("MOTE_KERNEL", pinned, 1);
  const Result<const Kernel*> kernel = select_kernel("test", kFloat, 5);
  std::fprintf(stderr, "%s\n", kernel.ok() ? std::string((*kernel)->name).c_str() : kernel.status().message().c_str());
  for (const KernelChoice& choice : kernel_choices()) std::fprintf(stderr, "because: %s\n", choice.reason.c_str());
  std::_Exit(kernel.ok() ? 0 : 1);
}

TEST(KernelDeathTest, the_environment_masks_features_and_pins_kernels) {
  EXPECT_EXIT(select_with("none", ""), testing::ExitedWithCode(0), "plain\nbecause: the highest rank with none");
  EXPECT_EXIT(select_with("none", "plain"), testing::ExitedWithCode(0), "plain\nbecause: MOTE_KERNEL");
  EXPECT_EXIT(select_with("avx3", ""), testing::ExitedWithCode(1), "MOTE_CPU_FEATURES holds 'avx3'");
  EXPECT_EXIT(select_with("none", "fast"), testing::ExitedWithCode(1),
              "'fast', which needs avx2: this CPU offers none");
  EXPECT_EXIT(select_with("none", "slow"), testing::ExitedWithCode(1), "'slow', which is no kernel");
}

}  // namespace
}  // namespace mote::test
