// How dispatches are cut into submissions: every workgroup runs once, and no submission has more work than it may have
// unless nothing in it can be divided.
#include <gtest/gtest.h>

#include <set>

#include "backends/vulkan/submissions.h"

namespace mote::vulkan::test {
namespace {

using Groups = std::array<uint32_t, 3>;

std::vector<Dispatch> dispatches_of(const std::vector<Groups>& groups) {
  std::vector<Dispatch> made(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) made[i].groups = groups[i];
  return made;
}

uint64_t count_of(const Groups& groups) { return uint64_t{groups[0]} * groups[1] * groups[2]; }

void expect_each_group_once(const Cut& made, const std::vector<Groups>& groups) {
  std::vector<std::set<Groups>> seen(groups.size());
  for (const Slice& slice : made.slices) {
    for (uint32_t z = 0; z < slice.groups[2]; ++z)
      for (uint32_t y = 0; y < slice.groups[1]; ++y)
        for (uint32_t x = 0; x < slice.groups[0]; ++x)
          EXPECT_TRUE(seen[slice.dispatch].insert({slice.base[0] + x, slice.base[1] + y, slice.base[2] + z}).second);
  }
  for (size_t i = 0; i < groups.size(); ++i) EXPECT_EQ(count_of(groups[i]), seen[i].size());
}

TEST(Cut, short_dispatches_share_a_submission) {
  const std::vector<Groups> groups = {{4, 1, 1}, {4, 1, 1}, {4, 1, 1}, {4, 1, 1}, {4, 1, 1}};
  const Cut made = cut(dispatches_of(groups), {10, 10, 10, 10, 10}, 25);
  ASSERT_EQ(5u, made.slices.size());
  EXPECT_EQ(3u, made.num_submissions);
  EXPECT_EQ(20, made.largest);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(i % 2 == 0, made.slices[i].begins_submission) << i;
  expect_each_group_once(made, groups);
}

TEST(Cut, long_dispatches_are_divided_along_the_last_dimension_that_has_several) {
  const std::vector<Groups> groups = {{7, 1, 1}, {7, 3, 1}, {2, 3, 5}, {1, 1, 1}};
  const Cut made = cut(dispatches_of(groups), {90, 90, 90, 90}, 10);
  EXPECT_LE(9u + 7u, made.num_submissions);
  EXPECT_EQ(90, made.largest);  // of the last, which is a single workgroup
  expect_each_group_once(made, groups);
}

TEST(Cut, workgroups_that_are_counted_along_two_dimensions_are_divided_along_the_second) {
  const std::vector<Groups> groups = {{65535, 3, 1}};
  const Cut made = cut(dispatches_of(groups), {1e6}, 1);
  ASSERT_EQ(3u, made.slices.size());
  for (const Slice& slice : made.slices) EXPECT_EQ(65535u, slice.groups[0]);
}

TEST(Cut, is_made_anew_where_a_submission_would_be_too_long_or_far_too_short) {
  const Cut made = cut(dispatches_of({{64, 1, 1}, {64, 1, 1}}), {100, 100}, 100);
  EXPECT_EQ(2u, made.num_submissions);
  EXPECT_TRUE(made.fits(100));
  EXPECT_TRUE(made.fits(50));
  EXPECT_FALSE(made.fits(49));
  EXPECT_TRUE(made.fits(800));
  EXPECT_FALSE(made.fits(801));
  EXPECT_TRUE(cut(dispatches_of({{64, 1, 1}}), {100}, 100).fits(801));  // one is as long as it is
}

TEST(Pace, slows_down_at_once_and_speeds_up_by_and_by) {
  Pace pace(1);
  pace.note(100, 300);
  EXPECT_EQ(3, pace.factor());
  pace.note(100, 1e9);  // a process that stood still
  EXPECT_EQ(12, pace.factor());
  pace.note(100, 400);
  EXPECT_EQ(10, pace.factor());
  pace.note(0, 400);
  EXPECT_EQ(10, pace.factor());
}

TEST(Work, of_attention_depends_on_what_a_token_sees) {
  Dispatch dispatch;
  dispatch.cost = {.bytes = 100, .macs = 0};
  dispatch.of_position = {.bytes = 0, .macs = 50};
  const double fixed = Work::of(dispatch).at(1, 0);
  EXPECT_DOUBLE_EQ(fixed + 30.0, Work::of(dispatch).at(3, 10));
  dispatch.window = 4;
  EXPECT_DOUBLE_EQ(fixed + 12.0, Work::of(dispatch).at(3, 10));
}

}  // namespace
}  // namespace mote::vulkan::test
