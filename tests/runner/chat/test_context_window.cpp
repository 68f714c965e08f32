// What of a conversation goes into a context that is too small for it.
#include "runner/chat/context_window.h"

#include <gtest/gtest.h>

#include <numeric>

namespace mote {
namespace {

std::vector<int32_t> numbers(int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(ContextWindow, keeps_all_while_it_fits) {
  ContextWindow window;
  EXPECT_EQ(window.fit(numbers(10), 10, 2), numbers(10));
  EXPECT_EQ(window.forgotten(), 0);
}

TEST(ContextWindow, forgets_the_oldest_behind_the_first_and_stays_there) {
  ContextWindow window;
  EXPECT_EQ(window.fit(numbers(12), 10, 2), (std::vector<int32_t>{0, 1, 8, 9, 10, 11}));
  EXPECT_EQ(window.forgotten(), 6);
  // What is added goes behind what the session has.
  EXPECT_EQ(window.fit(numbers(16), 10, 2), (std::vector<int32_t>{0, 1, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(window.fit(numbers(17), 10, 2), (std::vector<int32_t>{0, 1, 13, 14, 15, 16}));
  window.forgot(1);
  EXPECT_EQ(window.fit(numbers(18), 10, 2), (std::vector<int32_t>{0, 1, 14, 15, 16, 17}));
  // Another conversation.
  EXPECT_EQ(window.fit(numbers(3), 10, 2), numbers(3));
  EXPECT_EQ(window.forgotten(), 0);
  EXPECT_EQ(window.fit(numbers(11), 10, 0).size(), 5u);
}

}  // namespace
}  // namespace mote
