#include "base/size.h"

#include <gtest/gtest.h>

namespace mote {
namespace {

constexpr int64_t kLargest = INT64_MAX;

TEST(Size, computes_like_integers_in_range) {
  EXPECT_EQ((Size(3) * 4 + 5).value(), 17);
  EXPECT_EQ((Size(kLargest - 1) + 1).value(), kLargest);
  EXPECT_EQ((Size(0) * kLargest).value(), 0);
  EXPECT_EQ(Size(uint64_t{7}).unsigned_value(), 7u);
}

TEST(Size, is_invalid_once_a_step_overflows) {
  EXPECT_FALSE((Size(kLargest) + 1).valid());
  EXPECT_FALSE((Size(int64_t{1} << 32) * (int64_t{1} << 31)).valid());
  EXPECT_FALSE((Size(kLargest) * 2 * 0).valid());
  EXPECT_FALSE(((Size(kLargest) + kLargest) + 0).valid());
  EXPECT_EQ((Size(kLargest) + 1).value(), -1);
  EXPECT_EQ((Size(kLargest) + 1).unsigned_value(), 0u);
}

TEST(Size, is_invalid_for_negative_and_huge_numbers) {
  EXPECT_FALSE(Size(-1).valid());
  EXPECT_FALSE(Size(INT64_MIN).valid());
  EXPECT_FALSE(Size(UINT64_MAX).valid());
  EXPECT_FALSE(Size(uint64_t{1} << 63).valid());
  EXPECT_TRUE(Size((uint64_t{1} << 63) - 1).valid());
}

TEST(Size, an_invalid_size_compares_with_nothing) {
  const Size invalid = -1;
  EXPECT_FALSE(invalid.at_most(kLargest));
  EXPECT_FALSE(Size(0).at_most(invalid));
  EXPECT_FALSE(invalid == invalid);
  EXPECT_FALSE(invalid.is_multiple_of(1));
}

TEST(Size, aligns_up_without_wrapping) {
  EXPECT_EQ(Size(0).align_up(64).value(), 0);
  EXPECT_EQ(Size(1).align_up(64).value(), 64);
  EXPECT_EQ(Size(64).align_up(64).value(), 64);
  EXPECT_FALSE(Size(kLargest).align_up(64).valid());
  EXPECT_FALSE(Size(1).align_up(0).valid());
  EXPECT_FALSE(Size(1).align_up(-8).valid());
}

TEST(CheckedMultiplyAdd, notices_overflow_of_each_step) {
  int64_t value = 0;
  EXPECT_TRUE(checked_multiply_add(-3, 4, 5, &value));
  EXPECT_EQ(value, -7);
  EXPECT_FALSE(checked_multiply_add(kLargest, 2, 0, &value));
  EXPECT_FALSE(checked_multiply_add(kLargest, 1, 1, &value));
  EXPECT_FALSE(checked_multiply_add(INT64_MIN, 1, -1, &value));
}

}  // namespace
}  // namespace mote
