#include <gtest/gtest.h>

#include "runner/program/cpus.h"

namespace mote {
namespace {

class Cpus : public testing::Test {
 protected:
  void SetUp() override {
    if (usable_.empty()) GTEST_SKIP() << "this system does not tell its CPUs";
  }
  std::string number(int cpu) { return std::to_string(cpu); }

  std::vector<int> usable_ = usable_cpus();
};

TEST_F(Cpus, reads_numbers_and_ranges) {
  const int first = usable_.front();
  const int last = usable_.back();
  EXPECT_EQ(*parse_cpu_list(number(first)), std::vector<int>{first});
  EXPECT_EQ(*parse_cpu_list(number(first) + "-" + number(first) + "," + number(first)), std::vector<int>{first});
  if (last == first + static_cast<int>(usable_.size()) - 1) {
    EXPECT_EQ(*parse_cpu_list(number(first) + "-" + number(last)), usable_);
    EXPECT_EQ(*parse_cpu_list(number(last) + "," + number(first) + "-" + number(last)), usable_);
  }
}

TEST_F(Cpus, refuses_what_is_no_list) {
  for (const char* text : {"", ",", "0,", "a", "0-", "-1", "0 1", "1-0", "0;1", "0x1", "99999999999"}) {
    const auto cpus = parse_cpu_list(text);
    ASSERT_FALSE(cpus.ok()) << text;
    EXPECT_EQ(cpus.status().code(), Code::kInvalidArgument);
    EXPECT_NE(cpus.status().message().find("numbers and ranges separated by commas, such as 0-3,6"), std::string::npos)
        << cpus.status().message();
  }
}

TEST_F(Cpus, refuses_cpus_that_do_not_exist_and_says_which_do) {
  for (const char* text : {"4095", "0-2147483647", "2147483647"}) {
    const auto cpus = parse_cpu_list(text);
    ASSERT_FALSE(cpus.ok()) << text;
    EXPECT_NE(cpus.status().message().find("does not exist or is closed to this process, which may use "),
              std::string::npos)
        << cpus.status().message();
  }
}

TEST_F(Cpus, a_phones_slow_cluster_is_not_fast) {
  using Clusters = std::vector<CpuCluster>;
  const auto fast = [](const Clusters& clusters) { return text_of_list(fast_cpus(clusters)); };
  const CpuCluster slow{{0, 1, 2, 3}, 1800, "a55", 160}, middle{{4, 5}, 2250, "a76", 498},
      big{{6, 7}, 2800, "x1", 1024};
  EXPECT_EQ(fast({slow, middle, big}), "4-7");
  EXPECT_EQ(fast({big, middle}), "6-7");
  EXPECT_EQ(fast({slow}), "0-3");
  EXPECT_EQ(fast({{{0, 1}, 3500, "", 700}, {{2}, 4300, "", 1024}}), "0-2") << "more than a half";
  EXPECT_EQ(fast({{{0, 1}, 3500, "", 0}, {{2}, 4300, "", 0}}), "0-2") << "not told";
  EXPECT_EQ(fast({}), "");
}

TEST_F(Cpus, a_binding_ends_with_its_scope) {
  const std::vector<int> one = {usable_.back()};
  {
    const ScopedBinding binding(one);
    EXPECT_EQ(usable_cpus(), one);
  }
  EXPECT_EQ(usable_cpus(), usable_);
  const ScopedBinding none(std::span<const int>{});
  EXPECT_EQ(usable_cpus(), usable_);
}

}  // namespace
}  // namespace mote
