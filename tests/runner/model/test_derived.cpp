#include "runner/model/derived.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

namespace mote::test {
namespace {

template <typename T>
Result<std::shared_ptr<const T>> made(T value) {
  return std::make_shared<const T>(std::move(value));
}

TEST(Derived, makes_one_value_of_a_type_however_many_threads_ask) {
  constexpr int kThreads = 8, kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    const Derived derived;
    std::atomic<int> num_made{0};
    std::barrier start(kThreads);
    std::vector<std::shared_ptr<const std::string>> got(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        auto value = derived.get<std::string>([&] { return made(std::to_string(num_made++)); });
        if (value.ok()) got[static_cast<size_t>(i)] = *value;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(num_made, 1);
    ASSERT_NE(got[0], nullptr);
    EXPECT_EQ(*got[0], "0");
    for (const auto& value : got) EXPECT_EQ(value, got[0]);
  }
}

TEST(Derived, values_of_other_types_are_other_values) {
  const Derived derived;
  EXPECT_EQ(**derived.get<int>([] { return made(3); }), 3);
  EXPECT_EQ(**derived.get<std::string>([] { return made<std::string>("three"); }), "three");
  EXPECT_EQ(**derived.get<int>([] { return made(4); }), 3);
}

TEST(Derived, keeps_the_first_error) {
  const Derived derived;
  int num_made = 0;
  const auto fail = [&]() -> Result<std::shared_ptr<const int>> {
    return Status(Code::kInvalidArgument, "attempt " + std::to_string(++num_made));
  };
  for (int i = 0; i < 3; ++i) {
    const auto value = derived.get<int>(fail);
    EXPECT_EQ(value.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(value.status().message(), "attempt 1");
  }
  EXPECT_EQ(derived.get<int>([] { return made(1); }).status().message(), "attempt 1");
}

// What throws has made nothing: who asks next makes it.
TEST(Derived, is_made_again_after_a_throw) {
  const Derived derived;
  const auto throws = []() -> Result<std::shared_ptr<const int>> { throw std::bad_alloc(); };
  EXPECT_THROW((void)derived.get<int>(throws), std::bad_alloc);
  EXPECT_EQ(**derived.get<int>([] { return made(5); }), 5);
}

TEST(Derived, one_value_may_be_made_of_another) {
  const Derived derived;
  const auto text = [&]() -> Result<std::shared_ptr<const std::string>> {
    MOTE_ASSIGN(const auto number, derived.get<int>([] { return made(7); }));
    return made(std::to_string(*number));
  };
  EXPECT_EQ(**derived.get<std::string>(text), "7");
  EXPECT_EQ(**derived.get<int>([] { return made(8); }), 7);
}

TEST(Derived, an_error_of_what_a_value_is_made_of_is_that_values_too) {
  const Derived derived;
  const auto text = [&]() -> Result<std::shared_ptr<const std::string>> {
    MOTE_ASSIGN(const auto number, derived.get<int>([]() -> Result<std::shared_ptr<const int>> {
      return Status(Code::kOutOfMemory, "no number");
    }));
    return made(std::to_string(*number));
  };
  EXPECT_EQ(derived.get<std::string>(text).status().message(), "no number");
}

// A value outlives what it was asked of.
TEST(Derived, values_belong_to_whoever_has_them) {
  std::shared_ptr<const std::string> text;
  {
    const Derived derived;
    text = *derived.get<std::string>([] { return made<std::string>("still here"); });
  }
  EXPECT_EQ(*text, "still here");
}

}  // namespace
}  // namespace mote::test
