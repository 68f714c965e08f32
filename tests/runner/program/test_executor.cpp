#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>

#include "runner/program/executor.h"
#include "tests/runner/program/counted_allocations.h"
#include "tests/runner/program/sum_session.h"

namespace mote {
namespace {

using test::kVocabSize;

Result<std::shared_ptr<const Bound>> load(test::ProgramBuilder builder) {
  MOTE_ASSIGN(Mapped mapped, map_bytes("test.mote", builder.build()));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  return bind(std::move(verified));
}

class Session : public test::SumSession {
 public:
  Session(test::ProgramBuilder builder, ExecutorOptions options) : SumSession(load(std::move(builder)), options) {}
};

std::vector<float> row(const std::vector<float>& logits, size_t index) {
  const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(index * kVocabSize);
  return {begin, begin + kVocabSize};
}

TEST(Executor, runs_prefill_decode_and_verify_over_one_state) {
  Session session(test::sum_model(), {.max_tokens = 8});
  ASSERT_TRUE(session.status.ok()) << session.status.message();
  const auto expected = test::sum_model_logits({3, 1, 4, 1, 5, 9, 2});
  ASSERT_TRUE(session.run("prefill", {3, 1, 4}).ok());
  EXPECT_EQ(session.logits("prefill"), row(expected, 2));
  ASSERT_TRUE(session.run("decode", {1}).ok());
  EXPECT_EQ(session.logits("decode"), row(expected, 3));
  ASSERT_TRUE(session.run("verify", {5, 9, 2}).ok());
  EXPECT_EQ(session.logits("verify"), std::vector<float>(expected.begin() + 4 * kVocabSize, expected.end()));
}

// A check before the call cannot see it: the file becomes shorter behind it.
TEST(Executor, a_call_that_read_pages_which_are_gone_fails_and_so_does_every_later_one) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("mote_executor_" + std::to_string(::getpid()) + ".mote");
  const test::Bytes bytes = test::sum_model().build();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto load_path = [&]() -> Result<std::shared_ptr<const Bound>> {
    MOTE_ASSIGN(Mapped mapped, map(path.string()));
    MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
    return bind(std::move(verified));
  };
  test::SumSession session(load_path(), {.max_tokens = 8});
  ASSERT_TRUE(session.status.ok()) << session.status.message();
  ASSERT_TRUE(session.run("prefill", {3, 1, 4}).ok());
  std::filesystem::resize_file(path, 0);
  for (int i = 0; i < 2; ++i) {
    const Status status = session.run("decode", {1});
    EXPECT_EQ(status.code(), Code::kFileChanged);
    EXPECT_EQ(status.message(),
              path.string() + ": the file became shorter, or its disk failed, after it was loaded; load it again");
  }
  std::filesystem::remove(path);
}

TEST(Executor, gives_the_same_logits_however_a_prompt_is_cut) {
  const std::vector<int64_t> ids = {3, 1, 4, 1, 5, 9, 2, 6};
  const auto expected = row(test::sum_model_logits(ids), ids.size() - 1);
  for (size_t chunk = 1; chunk <= ids.size(); ++chunk) {
    Session session(test::sum_model(), {.max_tokens = 8});
    for (size_t begin = 0; begin < ids.size(); begin += chunk) {
      const size_t end = std::min(ids.size(), begin + chunk);
      ASSERT_TRUE(session
                      .run("prefill", std::vector<int64_t>(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                                           ids.begin() + static_cast<std::ptrdiff_t>(end)))
                      .ok());
    }
    EXPECT_EQ(session.logits("prefill"), expected) << "chunks of " << chunk;
  }
}

TEST(Executor, keeps_decode_prepared_while_prefill_changes_its_tokens) {
  Session session(test::sum_model(), {.max_tokens = 8});
  ASSERT_TRUE(session.run("decode", {1}).ok());
  ASSERT_TRUE(session.run("prefill", {1, 2, 3}).ok());
  const int64_t before = test::num_checks;
  ASSERT_TRUE(session.run("decode", {1}).ok());
  EXPECT_EQ(test::num_checks, before);
  ASSERT_TRUE(session.run("prefill", {1, 2}).ok());
  EXPECT_GT(test::num_checks, before);
}

TEST(Executor, allocates_nothing_in_a_decode_step_or_a_shorter_prefill) {
  Session session(test::sum_model(), {.max_tokens = 8});
  ASSERT_TRUE(session.run("decode", {1}).ok());
  const std::vector<int64_t> one = {4};
  const std::vector<int64_t> three = {4, 5, 6};
  const uint32_t decode = session.index("decode");
  const int64_t before = test::num_allocations();
  for (int step = 0; step < 10; ++step) EXPECT_TRUE(session.run("decode", one).ok());
  EXPECT_TRUE(session.run("prefill", three).ok());
  EXPECT_EQ(test::num_allocations(), before);
  EXPECT_EQ(session.executor().output(decode, 0).size(), static_cast<size_t>(kVocabSize));
}

TEST(Executor, allocation_counter_counts) {
  const int64_t before = test::num_allocations();
  std::vector<int> several(1000);
  EXPECT_GT(test::num_allocations(), before);
  EXPECT_EQ(several.size(), 1000u);
}

TEST(Executor, arena_is_what_the_plan_asks_for) {
  Session session(test::sum_model(), {.max_tokens = 8});
  // verify: two inputs and x, sum of [T, 4] float32, logits [T, 11] float32; each rounded up to 64 bytes a token.
  EXPECT_EQ(session.executor().arena_bytes(), 8u * 5 * 64);
}

TEST(Executor, refuses_an_arena_above_the_limit_before_allocating) {
  Session session(test::sum_model(), {.max_tokens = kMaxTokens, .max_arena_bytes = 1 << 20});
  EXPECT_EQ(session.status.code(), Code::kOutOfMemory);
  EXPECT_NE(session.status.message().find("choose a smaller prefill chunk"), std::string::npos)
      << session.status.message();
}

TEST(Executor, refuses_scratch_above_the_limit) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[1]->instructions[0]->op = "test.huge_scratch";
  Session session(std::move(builder), {.max_tokens = 8});
  EXPECT_EQ(session.status.code(), Code::kOutOfMemory) << session.status.message();
}

TEST(Executor, refuses_token_counts_outside_the_session_or_the_method) {
  Session session(test::sum_model(), {.max_tokens = 8});
  EXPECT_EQ(session.executor().prepare(session.index("prefill"), 9).code(), Code::kInvalidArgument);
  EXPECT_EQ(session.executor().prepare(session.index("prefill"), 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(session.executor().prepare(session.index("decode"), 2).code(), Code::kInvalidArgument);
  EXPECT_EQ(session.executor().prepare(99, 1).code(), Code::kInvalidArgument);
}

TEST(Executor, works_on_after_a_refused_token_count) {
  Session session(test::sum_model(), {.max_tokens = 8});
  EXPECT_FALSE(session.executor().prepare(session.index("decode"), 2).ok());
  EXPECT_TRUE(session.run("decode", {1}).ok());
}

TEST(Executor, refuses_states_of_another_count) {
  Session session(test::sum_model(), {.max_tokens = 8});
  EXPECT_EQ(session.executor().run(session.index("decode"), {}, test::cancel_flag).code(), Code::kInvalidArgument);
}

TEST(Executor, reports_a_kernel_error_with_its_place_and_keeps_working) {
  Session session(test::sum_model(), {.max_tokens = 8});
  const Status status = session.run("decode", {kVocabSize});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "test.mote: decode: instructions[0] (test.embedding, model.layers.0): id 11 is outside of the vocabulary");
  EXPECT_TRUE(session.run("decode", {1}).ok());
}

TEST(Executor, stops_at_the_next_instruction_when_cancelled) {
  test::ProgramBuilder builder = test::sum_model();
  builder.program.methods[1]->instructions[1]->op = "test.cancel";
  Session session(std::move(builder), {.max_tokens = 8});
  test::cancel_flag = false;
  EXPECT_EQ(session.run("decode", {1}).code(), Code::kCancelled);
  EXPECT_EQ(session.run("prefill", {1}).code(), Code::kCancelled);
  test::cancel_flag = false;
  EXPECT_TRUE(session.run("prefill", {1}).ok());
}

}  // namespace
}  // namespace mote
