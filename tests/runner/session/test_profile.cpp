#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runner/session/session.h"
#include "runner/session/trace.h"
#include "tests/runner/program/counted_allocations.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

using Json = nlohmann::json;

constexpr int64_t kWidth = 32;

class ProfiledSession : public testing::Test {
 protected:
  ProfiledSession() : file_(test::tiny_program({.width = kWidth})) {
    model_ = *Model::open(file_.path());
    session_ = *Session::open(model_, {.context_length = 32, .threads = 2});
  }

  Json stop() { return Json::parse(chrome_trace(*session_, *session_->stop_profile())); }

  static std::vector<Json> events(const Json& trace, const std::string& category) {
    std::vector<Json> found;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] == "X" && event["cat"] == category) found.push_back(event);
    }
    return found;
  }

  test::TinyFile file_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

TEST_F(ProfiledSession, has_an_event_for_each_call_and_inside_of_it_for_each_instruction) {
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5};
  session_->start_profile();
  ASSERT_TRUE(session_->prefill(prompt).ok());
  ASSERT_TRUE(session_->decode(6).ok());
  const Json trace = stop();
  const std::vector<Json> calls = events(trace, "call");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["name"], "prefill");
  EXPECT_EQ(calls[0]["args"]["tokens"], 5);
  EXPECT_EQ(calls[1]["name"], "decode");
  EXPECT_EQ(calls[1]["args"]["tokens"], 1);
  std::map<std::string, int> ops;
  for (const Json& event : events(trace, "op")) {
    const Json& call = event["ts"] >= calls[1]["ts"] ? calls[1] : calls[0];
    EXPECT_GE(event["ts"].get<double>(), call["ts"].get<double>());
    EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(),
              call["ts"].get<double>() + call["dur"].get<double>() + 0.002);
    EXPECT_GT(event["args"]["bytes"].get<int64_t>(), 0);
    EXPECT_EQ(event["args"]["origin"], "model.layers.0");
    ++ops[event["name"]];
  }
  EXPECT_EQ(ops["mote.attention"], 2);
  EXPECT_EQ(ops["mote.gated_linear"], 2);
  EXPECT_EQ(ops["mote.rope"], 4);
  EXPECT_EQ(ops.count("aten.view"), 0u);
  EXPECT_EQ(trace["otherData"]["threads"], 2);
  EXPECT_EQ(trace["otherData"]["forgotten_instructions"], 0);
}

TEST_F(ProfiledSession, knows_products_and_bytes_of_a_decode_step) {
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5};
  ASSERT_TRUE(session_->prefill(prompt).ok());
  session_->start_profile();
  ASSERT_TRUE(session_->decode(6).ok());
  const int64_t hidden = 32 * kWidth;
  const int64_t gate_up_bytes = 2 * hidden / 16 * ((hidden / 32) * 272 + 64);
  for (const Json& event : events(stop(), "op")) {
    const Json& cost = event["args"];
    if (event["name"] == "mote.gated_linear") {
      EXPECT_EQ(cost["macs"], 2 * hidden * hidden);
      EXPECT_EQ(cost["bytes"], gate_up_bytes + 4 * hidden + 4 * hidden);
    } else if (event["name"] == "mote.attention") {
      EXPECT_EQ(cost["macs"], 6 * 2 * kWidth * (16 + 16));  // 6 positions, all heads, keys and values
      EXPECT_GE(cost["bytes"].get<int64_t>(), 6 * kWidth * (16 + 16) * 4);
    } else if (event["name"] == "mote.embedding") {
      EXPECT_EQ(cost["macs"], 0);
      EXPECT_LT(cost["bytes"].get<int64_t>(), 8 * hidden);  // a row, not the table
    }
  }
}

TEST_F(ProfiledSession, starting_anew_forgets_and_stopping_ends) {
  session_->start_profile();
  ASSERT_TRUE(session_->decode(1).ok());
  session_->start_profile();
  EXPECT_TRUE(events(stop(), "call").empty());
  ASSERT_TRUE(session_->decode(2).ok());
  EXPECT_EQ(session_->stop_profile(), nullptr);
}

TEST_F(ProfiledSession, a_step_allocates_no_more_than_without) {
  const auto allocations_of_a_step = [&] {
    const int64_t before = test::num_allocations();
    EXPECT_TRUE(session_->decode(3).ok());
    return test::num_allocations() - before;
  };
  (void)allocations_of_a_step();
  const int64_t plain = allocations_of_a_step();
  session_->start_profile();
  EXPECT_EQ(allocations_of_a_step(), plain);
}

TEST_F(ProfiledSession, logits_are_the_same_bits) {
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5};
  const auto plain = session_->prefill(prompt);
  const std::vector<float> expected(plain->begin(), plain->end());
  session_->reset();
  session_->start_profile();
  const auto profiled = session_->prefill(prompt);
  EXPECT_EQ(std::vector<float>(profiled->begin(), profiled->end()), expected);
}

TEST(Ring, keeps_the_newest) {
  Ring<int> ring(3);
  for (int i = 0; i < 2; ++i) ring.add() = i;
  EXPECT_EQ(ring.first(), 0u);
  for (int i = 2; i < 8; ++i) ring.add() = i;
  EXPECT_EQ(ring.first(), 5u);
  EXPECT_EQ(ring.num_added(), 8u);
  for (uint64_t i = ring.first(); i < ring.num_added(); ++i) EXPECT_EQ(ring[i], static_cast<int>(i));
}

// Counts the loops that a pool would spread over threads, and runs them on the calling one.
class CountingPool final : public ThreadPool {
 public:
  int num_threads() const override { return 2; }
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body) override {
    if (count > std::max<int64_t>(grain, 1)) ++num_spread;
    if (count > 0) body(0, count, 0);
  }
  int num_spread = 0;
};

TEST(Loops, a_decode_step_needs_at_most_six_a_layer) {
  const test::TinyFile file(test::tiny_program({.width = kWidth}));
  const auto model = *Model::open(file.path());
  StateMemory states = *StateMemory::allocate(*model->bound(), {.context_length = 64, .prefill_chunk = 32});
  CountingPool pool;
  const auto executor = *Executor::create(model->bound(), {.max_tokens = 32}, &pool);
  const std::atomic<bool> cancelled{false};
  const auto run = [&](const char* name, int64_t tokens, int64_t position) {
    const uint32_t method = *model->bound()->method_index(name);
    ASSERT_TRUE(executor->prepare(method, tokens).ok());
    for (int64_t t = 0; t < tokens; ++t) {
      executor->input(method, 0)[static_cast<size_t>(t)] = t % 19;
      executor->input(method, 1)[static_cast<size_t>(t)] = position + t;
    }
    ASSERT_TRUE(states.reserve(position, tokens).ok());
    ASSERT_TRUE(executor->run(method, {states.kv_caches(), states.recurrent_states()}, cancelled).ok());
  };
  run("prefill", 32, 0);
  pool.num_spread = 0;
  run("decode", 1, 32);
  EXPECT_LE(pool.num_spread, 6);  // the model has one layer, and a head that is too small to spread
  EXPECT_GE(pool.num_spread, 4);  // its linears are not
}

}  // namespace
}  // namespace mote
