#include "runner/session/state/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace mote::test {
namespace {

static_assert(!std::is_copy_constructible_v<Slab>);

TEST(Slab, is_writable_for_its_only_holder) {
  Slab first = Slab::allocate(4096);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first.is_writable());
  {
    const Slab second = first.share();
    EXPECT_EQ(second.data(), first.data());
    EXPECT_EQ(second.bytes(), 4096u);
    EXPECT_FALSE(first.is_writable());
    EXPECT_FALSE(second.is_writable());
  }
  EXPECT_TRUE(first.is_writable());
}

TEST(Slab, moving_makes_no_holder) {
  Slab first = Slab::allocate(64);
  Slab second = std::move(first);
  EXPECT_TRUE(second.is_writable());
  std::vector<Slab> slabs;
  slabs.push_back(second.share());
  slabs.push_back(second.share());
  second = Slab();
  EXPECT_FALSE(slabs[0].is_writable());
  slabs.erase(slabs.begin());
  EXPECT_TRUE(slabs[0].is_writable());
}

TEST(Slab, merging_keeps_what_all_holders_see) {
  constexpr size_t kBytes = size_t{5} << 20;
  for (const bool is_filled : {false, true}) {
    const Slab first = Slab::allocate(kBytes, is_filled);
    ASSERT_TRUE(first);
    std::fill_n(first.data(), kBytes, std::byte{7});
    const Slab second = first.share();
    first.merge();
    second.merge();
    EXPECT_EQ(std::count(second.data(), second.data() + kBytes, std::byte{7}), static_cast<std::ptrdiff_t>(kBytes));
  }
}

TEST(Slab, the_last_holder_keeps_the_memory) {
  Slab first = Slab::allocate(64);
  first.data()[0] = std::byte{7};
  const Slab second = first.share();
  first = Slab::allocate(64);
  EXPECT_EQ(second.data()[0], std::byte{7});
  EXPECT_EQ(first.data()[0], std::byte{0});
  EXPECT_TRUE(second.is_writable());
}

TEST(Slab, of_no_memory_shares_none) {
  const Slab none;
  EXPECT_FALSE(none.share());
}

}  // namespace
}  // namespace mote::test
