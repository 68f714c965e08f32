// Kernels that are chosen by trying them.
#include "kernels/trial.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "kernels/ops/attention/kernel.h"
#include "kernels/ops/attention/trials.h"
#include "kernels/ops/linear/trials.h"

namespace mote::test {
namespace {

constexpr Kernel kUsual = {.name = "trial_usual", .role = "trial"}, kOther = {.name = "trial_other", .role = "trial"};

// A file of its own, gone at the end.
class TrialTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("trial_") + testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::filesystem::path path_ = folder_ / "deep" / "kernels.txt";
  const TrialRecord record_{path_.string()};
};

TEST_F(TrialTest, the_other_kernel_wins_by_three_percent_in_all_rounds_but_one) {
  const std::vector<double> usual = {1, 1, 1, 1, 1};
  EXPECT_TRUE(wins(std::vector<double>{0.9, 0.9, 0.96, 0.9, 0.9}, usual));
  EXPECT_TRUE(wins(std::vector<double>{0.9, 0.9, 5, 0.9, 0.9}, usual));
  EXPECT_FALSE(wins(std::vector<double>{0.9, 0.9, 5, 0.9, 0.99}, usual));
  EXPECT_FALSE(wins(usual, usual));
}

TEST_F(TrialTest, a_record_keeps_the_last_answer) {
  EXPECT_EQ("", record_.find("a"));
  record_.keep("a", "one");
  record_.keep("a b", "two");
  record_.keep("a", "three");
  EXPECT_EQ("three", record_.find("a"));
  EXPECT_EQ("two", record_.find("a b"));
  EXPECT_EQ("", record_.find("b"));
}

TEST_F(TrialTest, a_record_that_is_damaged_or_cannot_be_written_is_none) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_) << "a\nb\t\n\t\n" << std::string(100, '\0') << "\na\tone";
  EXPECT_EQ("one", record_.find("a"));
  EXPECT_EQ("", record_.find("b"));
  TrialRecord(folder_.string()).keep("a", "two");  // a folder
  EXPECT_EQ("", TrialRecord(folder_.string()).find("a"));
  TrialRecord("").keep("a", "two");
  EXPECT_EQ("", TrialRecord("").find("a"));
}

TEST_F(TrialTest, a_record_does_not_grow_for_ever) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_) << std::string(100'000, 'x') << '\n';
  record_.keep("a", "one");
  EXPECT_EQ("one", record_.find("a"));
  EXPECT_LT(std::filesystem::file_size(path_), 1000u);
}

TEST_F(TrialTest, both_kernels_read_other_memory_each_time_and_the_answer_is_kept) {
  const int usual = 0, other = 0;
  Kernel first = kUsual, second = kOther;
  first.functions = &usual;
  second.functions = &other;
  std::set<const std::byte*> starts;
  int runs[2] = {};
  const Trial trial = {"work", [&](const void* functions, std::span<std::byte> memory) {
                         ++runs[functions == &other];
                         starts.insert(memory.data());
                         EXPECT_EQ(std::byte{0x11}, memory.back());
                       }};
  const Kernel* found = KernelTrials(record_, 60).faster(first, second, {}, trial);
  ASSERT_TRUE(found == &first || found == &second);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_GE(runs[0], 5);
  EXPECT_GE(starts.size(), 4u);
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  EXPECT_NE(std::string::npos, line.find("float32, work; trial_usual or trial_other\t"));
}

TEST_F(TrialTest, threads_run_copies_at_once_that_share_nothing) {
  std::mutex mutex;
  std::set<const int*> counts;
  std::set<const std::byte*> slices;
  Trial trial;
  trial.num_threads = 3;
  trial.run = [&, count = 0](const void*, std::span<std::byte> memory) mutable {
    ++count;
    const std::lock_guard lock(mutex);
    counts.insert(&count);
    slices.insert(memory.data());
  };
  KernelTrials(record_, 60).faster(kUsual, kOther, {}, trial);
  EXPECT_GE(counts.size(), 3u);
  EXPECT_GE(slices.size(), 3u);
}

TEST_F(TrialTest, what_is_known_is_not_tried_again) {
  KernelTrials first(record_, 60);
  int runs = 0;
  const Trial trial = {"work", [&](const void*, std::span<std::byte>) { ++runs; }};
  const Kernel* found = first.faster(kUsual, kOther, {}, trial);
  const int once = runs;
  EXPECT_EQ(found, first.faster(kUsual, kOther, {}, trial));
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  const std::string key = line.substr(0, line.find('\t'));
  const auto found_by_another = [&](std::string_view kept) {
    record_.keep(key, kept);
    return KernelTrials(record_, 60).faster(kUsual, kOther, {}, trial);
  };
  EXPECT_EQ(&kOther, found_by_another("trial_other"));
  EXPECT_EQ(&kUsual, found_by_another("trial_usual"));
  EXPECT_EQ(&kUsual, found_by_another("a kernel of another version"));
  EXPECT_EQ(once, runs);
}

TEST_F(TrialTest, without_time_the_usual_one_is_taken_and_nothing_kept) {
  int runs = 0;
  const Trial trial = {"work", [&](const void*, std::span<std::byte>) { ++runs; }};
  KernelTrials trials(record_, 1e-9);
  EXPECT_EQ(&kUsual, trials.faster(kUsual, kOther, {}, trial));
  EXPECT_EQ(2, runs);  // before the first round
  EXPECT_EQ(&kUsual, trials.faster(kUsual, kOther, {}, trial));
  EXPECT_EQ(2, runs);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Every kernel that may be tried runs on that memory, whose size is no multiple of anything.
void run_all(std::string_view role, const WeightKind& kind, int64_t tokens, const Trial& trial) {
  ASSERT_TRUE(trial.run);
  std::vector<std::byte> memory(1'000'064, std::byte{0x11});
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  int count = 0;
  for (const Kernel* kernel : all_kernels()) {
    if (kernel->role != role || !cpu_features()->has_all(kernel->needs)) continue;
    if (kernel->min_tokens > tokens || kernel->max_tokens < tokens) continue;
    if (kernel->rank < 0 || (kernel->takes != nullptr && !kernel->takes(kind))) continue;
    const bool reads_streams = kernel->name.find("stream") != std::string_view::npos;
    if (tokens < kTokenBlock && !reads_streams && role != AttentionKernel::kRole) continue;
    trial.run(kernel->functions, {aligned, 1'000'000});
    ++count;
  }
  // The code for every CPU reads streams for one token alone.
  const bool has_products = cpu_features()->has_all(CpuFeature::kAvx2) || cpu_features()->has_all(CpuFeature::kDotprod);
  EXPECT_GE(count, tokens == 1 || has_products ? 1 : 0);
}

Tensor weight_of(uint8_t bits, int32_t group_size, const TileScales& scales) {
  Tensor weight;
  weight.rank = 2;
  weight.sizes[0] = 2048;
  weight.sizes[1] = 512;
  weight.bits = bits;
  weight.group_size = group_size;
  weight.scales = scales;
  return weight;
}

TEST(ProductTrial, runs_each_kernel_that_reads_streams) {
  const Tensor four = weight_of(4, 32, {}), eight = weight_of(8, 64, {});
  for (const int64_t tokens : {1, 4}) {
    run_all("linear.codes", WeightKind::of(four), tokens, product_trial(four, ActivationMode::kCodes, tokens));
    run_all("linear.codes", WeightKind::of(eight), tokens, product_trial(eight, ActivationMode::kCodes, tokens));
  }
  Tensor half = four;
  half.scales.columns = 32;
  run_all("linear.groups", WeightKind::of(half), 1, product_trial(half, ActivationMode::kGroups, 1));
}

TEST(ProductTrial, runs_each_kernel_for_prompts_where_some_share_a_unit) {
  const Tensor four = weight_of(4, 32, {});
  const Trial trial = product_trial(four, ActivationMode::kCodes, 100);
  ASSERT_EQ(cpu_features()->has_all(CpuFeature::kSme), static_cast<bool>(trial.run));
  if (!trial.run) GTEST_SKIP() << "no such unit";
  EXPECT_GE(trial.num_threads, 1);
  run_all("linear.codes", WeightKind::of(four), 100, trial);
}

TEST(ProductTrial, leaves_out_what_does_not_wait_for_memory) {
  const Tensor four = weight_of(4, 32, {});
  EXPECT_TRUE(product_trial(four, ActivationMode::kCodes, 4).run);
  EXPECT_FALSE(product_trial(four, ActivationMode::kCodes, 5).run);
  Tensor small = four;
  small.sizes[0] = 256;
  EXPECT_FALSE(product_trial(small, ActivationMode::kCodes, 1).run);
  EXPECT_FALSE(product_trial(weight_of(0, 0, {}), ActivationMode::kDense, 1).run);
  Tensor wide = four;
  wide.sizes[1] = int64_t{1} << 40;
  EXPECT_FALSE(product_trial(wide, ActivationMode::kCodes, 1).run);
}

TEST(AttentionTrial, runs_each_kernel) {
  StateShape shape;
  shape.is_kv_cache = true;
  shape.num_heads = 8;
  shape.head_dim = 128;
  shape.value_head_dim = 72;
  for (const int64_t heads : {8, 16, 40}) { run_all(AttentionKernel::kRole, {}, 1, attention_trial(shape, heads, 1)); }
  EXPECT_FALSE(attention_trial(shape, 48, 1).run);  // six queries of a head
  EXPECT_FALSE(attention_trial(shape, 16, 3).run);
  shape.value_head_dim = 1 << 30;
  EXPECT_FALSE(attention_trial(shape, 16, 1).run);
  shape.value_head_dim = 72;
  shape.num_heads = 3;
  EXPECT_FALSE(attention_trial(shape, 9, 1).run);  // a small cache
}

}  // namespace
}  // namespace mote::test
