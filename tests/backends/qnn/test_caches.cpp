// Keys and values in slots, as rows, and in snapshots.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "backends/qnn/caches.h"

namespace mote::qnn::test {
namespace {

using Halves = std::vector<uint16_t>;
constexpr int32_t kState = 5;
constexpr uint32_t kSlots = 6;

Caches two_heads() { return Caches({{kState, {kSlots, 2, 2, 1}}}); }  // keys 2 wide, values 1

std::span<std::byte> bytes_of(Halves& halves) { return std::as_writable_bytes(std::span(halves)); }

// Rows [heads, tokens, width] whose elements are counted from `first` on.
Halves counted(size_t count, uint16_t first) {
  Halves halves(count);
  std::iota(halves.begin(), halves.end(), first);
  return halves;
}

void append(Caches& caches, int64_t position, int64_t tokens, uint16_t first) {
  const auto count = static_cast<size_t>(tokens);
  caches.append(kState, position, tokens, counted(4 * count, first).data(),
                counted(2 * count, static_cast<uint16_t>(first + 100)).data());
}

TEST(QnnCaches, hold_a_slot_a_position_of_each_head) {
  Caches caches = two_heads();
  EXPECT_EQ(caches.positions(), 0);
  caches.reserve();
  append(caches, 0, 2, 0);
  append(caches, 2, 1, 50);
  EXPECT_EQ(caches.positions(), 3);
  Halves keys(12), values(6);
  caches.read(kState, 3, bytes_of(keys), bytes_of(values));
  EXPECT_EQ(keys, (Halves{0, 1, 4, 5, 2, 3, 6, 7, 50, 51, 52, 53}));  // [positions, heads, width]
  EXPECT_EQ(values, (Halves{100, 102, 101, 103, 150, 151}));
}

TEST(QnnCaches, drop_what_fills_a_call_up_behind_the_last_slot) {
  Caches caches = two_heads();
  caches.reserve();
  append(caches, 0, 4, 0);
  append(caches, 4, 4, 200);
  EXPECT_EQ(caches.positions(), kSlots);
  EXPECT_FALSE(caches.seek(7));
  EXPECT_TRUE(caches.seek(5));
  EXPECT_EQ(caches.positions(), 5);
}

TEST(QnnCaches, go_on_from_snapshots_and_bytes) {
  Caches caches = two_heads();
  caches.reserve();
  append(caches, 0, 3, 7);
  const auto snapshot = caches.snapshot();
  ASSERT_TRUE(snapshot.ok());
  const auto bytes = (*snapshot)->to_bytes();
  ASSERT_TRUE(bytes.ok());
  Caches other = two_heads();
  const auto imported = other.import(*bytes);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(other.restore(**imported).ok());
  EXPECT_EQ(other.positions(), 3);
  Halves keys(12), values(6), other_keys(12), other_values(6);
  caches.read(kState, 3, bytes_of(keys), bytes_of(values));
  other.read(kState, 3, bytes_of(other_keys), bytes_of(other_values));
  EXPECT_EQ(keys, other_keys);
  EXPECT_EQ(values, other_values);
}

TEST(QnnCaches, refuse_bytes_of_other_sizes) {
  const Caches caches = two_heads();
  const std::vector<std::byte> odd(13), many(12 * (kSlots + 1));
  EXPECT_EQ(caches.import(odd).status().code(), Code::kInvalidSession);
  EXPECT_EQ(caches.import(many).status().code(), Code::kInvalidSession);
  Caches written = two_heads();
  EXPECT_EQ(written.write(kState, kSlots + 1, {}, {}).code(), Code::kUnsupportedBackend);
}

}  // namespace
}  // namespace mote::qnn::test
