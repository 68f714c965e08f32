// Slots and rows of a recurrent state, with a state that says itself what it is of: the ids of all tokens before it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/vulkan/state_slots.h"
#include "tests/backends/mutations.h"

namespace mote::vulkan::test {
namespace {

using mote::test::below;
using mote::test::Random;

// What linear_attention.comp does with a plan.
class Device {
 public:
  Device(int64_t num_slots, int64_t num_rows)
      : slots_(static_cast<size_t>(num_slots)), rows_(static_cast<size_t>(num_rows), ' ') {}

  std::string state(const SlotPlan& plan) const {
    std::string state = plan.source == SlotPlan::kZero ? "" : slots_[plan.source];
    for (uint32_t t = 0; t < plan.replayed; ++t) state += rows_[(plan.first_replayed + t) % rows_.size()];
    return state;
  }
  void run(const SlotPlan& plan, const std::string& ids) {
    std::string state = this->state(plan);
    EXPECT_EQ(state.size(), plan.start);
    uint32_t copy = 0;
    for (uint32_t t = 0;; ++t) {
      for (; copy < plan.num_copies && plan.copies[copy].tokens == t; ++copy) slots_[plan.copies[copy].slot] = state;
      if (t == ids.size()) break;
      if (t + plan.recorded >= ids.size()) {
        rows_[(plan.first_recorded + t + plan.recorded - ids.size()) % rows_.size()] = ids[t];
      }
      state += ids[t];
    }
    EXPECT_EQ(copy, plan.num_copies);
  }

 private:
  std::vector<std::string> slots_;
  std::string rows_;
};

class Session {
 public:
  Session(int64_t num_slots, int64_t num_rows) : slots_(num_slots, num_rows), device_(num_slots, num_rows) {}

  // fails: the device does what it is told, and the call fails nevertheless
  void call(size_t tokens, size_t num_kept, bool fails, Random& random) {
    std::string ids;
    for (size_t i = 0; i < tokens; ++i) ids += static_cast<char>('a' + below(random, 26));
    const Result<SlotPlan> plan = slots_.begin(static_cast<int64_t>(tokens), static_cast<int64_t>(num_kept));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(device_.state(*plan), text_);
    device_.run(*plan, ids);
    if (fails) return;
    slots_.end();
    text_ += ids;
  }
  void seek(int64_t position) {
    ASSERT_EQ(slots_.nearest(position), position);
    slots_.seek(position);
    text_.resize(static_cast<size_t>(position));
  }
  int64_t nearest(int64_t to) const { return slots_.nearest(to); }
  int64_t position() const { return static_cast<int64_t>(text_.size()); }

 private:
  StateSlots slots_;
  Device device_;
  std::string text_;
};

// Every call begins with the state of the tokens before it, whatever was taken back and whatever failed.
TEST(VulkanStateSlots, holdTheStateOfEveryCall) {
  for (const auto& [num_slots, num_rows] : {std::pair<int64_t, int64_t>{6, 96}, {2, 96}, {3, 5}, {2, 0}, {4, 33}}) {
    const auto reach = static_cast<size_t>(StateSlots::reach(num_rows));
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Random random(seed * 0x9E3779B97F4A7C15u + 1);
      Session session(num_slots, num_rows);
      for (int step = 0; step < 120; ++step) {
        switch (below(random, 6)) {
          case 0: session.call(1 + below(random, 200), 1, true, random); break;
          case 1: {
            const size_t tokens = 1 + below(random, 200);
            session.call(tokens, tokens, false, random);
            break;
          }
          case 2: session.seek(session.nearest(static_cast<int64_t>(below(random, 400)))); break;
          case 3: {  // a draft of which some stays
            const size_t drafted = below(random, reach + 1), kept = 1 + below(random, 3);
            session.call(kept + drafted, kept, false, random);
            session.seek(session.position() - static_cast<int64_t>(below(random, drafted + 1)));
            break;
          }
          default: session.call(1, 1, false, random);
        }
        if (::testing::Test::HasFailure()) FAIL() << num_rows << " rows, seed " << seed << ", step " << step;
      }
    }
  }
}

TEST(VulkanStateSlots, goBackAsFarAsRowsReach) {
  Random random(1);
  Session session(6, 96);
  session.call(200, 200, false, random);
  for (int i = 0; i < 300; ++i) session.call(1, 1, false, random);
  for (int64_t back = 0; back <= 64; ++back) EXPECT_EQ(session.nearest(500 - back), 500 - back);
  EXPECT_EQ(session.nearest(300), 0);
  Session without(2, 0);
  without.call(7, 5, false, random);
  EXPECT_EQ(without.nearest(7), 5);
}

}  // namespace
}  // namespace mote::vulkan::test
