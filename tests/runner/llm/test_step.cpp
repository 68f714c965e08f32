// How often the threads of a decode step wait for each other.
#include <gtest/gtest.h>

#include <algorithm>

#include "runner/llm/model.h"
#include "runner/llm/state_memory.h"
#include "runner/program/executor.h"
#include "tests/runner/llm/tiny_file.h"

namespace mote {
namespace {

// Counts the loops that are long enough for more than one thread: each ends with a barrier.
class CountingPool final : public ThreadPool {
 public:
  int num_threads() const override { return 2; }
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body) override {
    if (count > std::max<int64_t>(grain, 1)) ++barriers;
    if (count > 0) body(0, count, 0);
  }
  int barriers = 0;
};

TEST(DecodeStep, has_at_most_six_barriers_a_layer) {
  const test::TinyFile file(test::tiny_program({.width = 64}));  // one layer of 2048 columns
  auto model = Model::open(file.path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto states = StateMemory::allocate((*model)->program(), {64, 64, KvType::kFloat32});
  ASSERT_TRUE(states.ok());
  CountingPool pool;
  auto executor = Executor::create((*model)->bound(), {.max_tokens = 64}, &pool);
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  const std::atomic<bool> cancelled{false};
  const auto run = [&](const char* name, int64_t tokens, int64_t position) {
    const uint32_t method = *(*model)->bound()->method_index(name);
    ASSERT_TRUE((*executor)->prepare(method, tokens).ok());
    for (size_t i = 0; i < static_cast<size_t>(tokens); ++i) {
      (*executor)->input(method, 0)[i] = 1;
      (*executor)->input(method, 1)[i] = position + static_cast<int64_t>(i);
    }
    pool.barriers = 0;
    ASSERT_TRUE((*executor)->run(method, {states->kv_caches(), states->recurrent_states()}, cancelled).ok());
  };
  run("prefill", 30, 0);
  run("decode", 1, 30);
  EXPECT_GE(pool.barriers, 4);  // the four products of the layer are split
  EXPECT_LE(pool.barriers, 6);
}

}  // namespace
}  // namespace mote
