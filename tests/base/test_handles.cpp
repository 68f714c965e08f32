#include "base/handles.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace mote {
namespace {

std::atomic<int> num_alive{0};

struct Lamp {
  static constexpr const char* kName = "lamp";
  explicit Lamp(int given) : number(given) { ++num_alive; }
  ~Lamp() {
    number = -1;
    --num_alive;
  }
  int number;
};

struct Chair {
  static constexpr const char* kName = "chair";
};

void* open_lamp(int number) { return *open_handle(std::make_unique<Lamp>(number)); }
void close_lamp(const void* handle) { close_handle(kHandleKind<Lamp>, handle); }
std::string error_of(const void* handle) {
  const auto lamp = Held<Lamp>::of(handle);
  return lamp.ok() ? "" : lamp.status().message().substr(lamp.status().message().find(':') + 1);
}

TEST(Handles, find_what_they_were_opened_for) {
  void* first = open_lamp(1);
  void* second = open_lamp(2);
  EXPECT_EQ(Held<Lamp>::find(first)->number, 1);
  EXPECT_EQ((*Held<Lamp>::of(second))->number, 2);
  EXPECT_EQ(num_handle_objects(), 2u);
  close_lamp(first);
  EXPECT_EQ(Held<Lamp>::find(second)->number, 2);
  close_lamp(second);
  EXPECT_EQ(num_alive, 0);
  EXPECT_EQ(num_handle_objects(), 0u);
}

TEST(Handles, closed_ones_stay_closed_when_their_place_is_used_again) {
  void* old = open_lamp(1);
  close_lamp(old);
  void* next = open_lamp(2);
  EXPECT_FALSE(Held<Lamp>::find(old));
  EXPECT_EQ(error_of(old), " it was closed");
  close_lamp(old);
  EXPECT_EQ(Held<Lamp>::find(next)->number, 2);
  close_lamp(next);
}

TEST(Handles, values_that_are_none_are_refused) {
  void* lamp = open_lamp(1);
  int on_the_stack = 0;
  const auto value = reinterpret_cast<uintptr_t>(lamp);
  EXPECT_EQ(Held<Lamp>::of(nullptr).status().message(), "lamp is NULL");
  for (const uintptr_t wrong : {reinterpret_cast<uintptr_t>(&on_the_stack), uintptr_t{1}, uintptr_t{2}, UINTPTR_MAX,
                                value - 1, value + 2, value + (uintptr_t{1} << (sizeof(void*) * 8 - 7))}) {
    const void* handle = reinterpret_cast<const void*>(wrong);
    EXPECT_EQ(error_of(handle), " must be a handle that was opened") << handle;
    close_lamp(handle);
  }
  EXPECT_EQ(num_alive, 1);
  close_lamp(lamp);
}

TEST(Handles, of_another_kind_are_refused) {
  void* chair = *open_handle(std::make_unique<Chair>());
  EXPECT_EQ(error_of(chair), " it is the handle of a chair");
  close_lamp(chair);
  EXPECT_TRUE(Held<Chair>::find(chair));
  close_handle(kHandleKind<Chair>, chair);
}

TEST(Handles, what_was_closed_lives_until_it_is_let_go) {
  void* handle = open_lamp(1);
  {
    const auto held = Held<Lamp>::find(handle);
    close_lamp(handle);
    EXPECT_FALSE(Held<Lamp>::find(handle));
    EXPECT_EQ(error_of(handle), " it was closed");
    EXPECT_EQ(held->number, 1);
    EXPECT_EQ(num_handle_objects(), 1u);
  }
  EXPECT_EQ(num_alive, 0);
}

TEST(Handles, many_are_told_apart) {
  std::set<void*> handles;
  for (int i = 0; i < 5000; ++i) handles.insert(open_lamp(i));
  EXPECT_EQ(handles.size(), 5000u);
  std::set<int> numbers;
  for (void* handle : handles) numbers.insert(Held<Lamp>::find(handle)->number);
  EXPECT_EQ(numbers.size(), 5000u);
  for (void* handle : handles) close_lamp(handle);
  EXPECT_EQ(num_alive, 0);
}

// Threads open, look up and close in the same places.
TEST(Handles, threads_never_see_what_is_gone) {
  std::vector<std::atomic<void*>> places(4);
  const auto work = [&](uint32_t seed) {
    for (uint32_t i = 0; i < 20000; ++i) {
      seed = seed * 1664525 + 1013904223;
      std::atomic<void*>& place = places[(seed >> 8) % 4];
      if (seed >> 30 == 0) {
        close_lamp(place.exchange(open_lamp(static_cast<int>(i))));
      } else if (const auto held = Held<Lamp>::find(place.load())) {
        EXPECT_GE(held->number, 0);
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  for (const auto& place : places) close_lamp(place.load());
  EXPECT_EQ(num_alive, 0);
  EXPECT_EQ(num_handle_objects(), 0u);
}

}  // namespace
}  // namespace mote
