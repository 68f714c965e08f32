#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "runner/generation/generation.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

using Ids = std::vector<int32_t>;

struct Outcome {
  Ids ids;
  std::string text;
  std::optional<FinishReason> reason;
};

class GenerationTest : public testing::Test {
 protected:
  explicit GenerationTest(Ids eos = {}) : file_(with_eos(std::move(eos))) {
    auto model = Model::open(file_.path());
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = *model;
  }

  static test::ProgramBuilder with_eos(Ids eos) {
    test::ProgramBuilder builder = test::tiny_program();
    builder.program.eos_token_ids = std::move(eos);
    return builder;
  }

  std::unique_ptr<Session> session(int64_t context_length = 64) {
    return *Session::open(model_, {.context_length = context_length, .threads = 1});
  }

  Outcome run(Session& session, Ids prompt, const GenerationOptions& options) {
    auto generation = Generation::begin(session, std::move(prompt), options);
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    Outcome outcome;
    if (!generation.ok()) return outcome;
    while (!outcome.reason.has_value()) {
      auto piece = (*generation)->next();
      EXPECT_TRUE(piece.ok()) << piece.status().message();
      if (!piece.ok()) break;
      if (piece->id >= 0) outcome.ids.push_back(piece->id);
      outcome.text += piece->text;
      outcome.reason = piece->finish_reason;
    }
    EXPECT_EQ((*generation)->statistics().generated_tokens, static_cast<int64_t>(outcome.ids.size()));
    return outcome;
  }

  test::TinyFile file_;
  std::shared_ptr<const Model> model_;
};

TEST_F(GenerationTest, greedy_follows_the_largest_logit) {
  const Outcome outcome = run(*session(), {1, 2}, {.max_new_tokens = 6});
  EXPECT_EQ(outcome.reason, FinishReason::kLength);
  const auto by_hand = session();
  auto logits = by_hand->prefill(Ids{1, 2});
  for (const int32_t id : outcome.ids) {
    ASSERT_TRUE(logits.ok());
    EXPECT_EQ(id, std::max_element(logits->begin(), logits->end()) - logits->begin());
    logits = by_hand->decode(id);
  }
  EXPECT_EQ(outcome.text, (*model_->tokenizer())->decode(outcome.ids, true));
}

TEST_F(GenerationTest, fills_the_context_and_ends) {
  const auto small = session(10);
  const Outcome outcome = run(*small, {1, 2, 3}, {});
  EXPECT_EQ(outcome.reason, FinishReason::kLength);
  EXPECT_EQ(outcome.ids.size(), 8u);  // seven fit behind the prompt, one more is sampled from the last logits
  EXPECT_EQ(small->position(), 10);
}

TEST_F(GenerationTest, an_eos_token_ends_it_and_is_not_text) {
  const Outcome plain = run(*session(), {1, 2}, {.max_new_tokens = 4});
  const test::TinyFile file(with_eos({plain.ids[1]}));
  const auto model = *Model::open(file.path());
  const auto with_end = *Session::open(model, {.threads = 1});
  const Outcome ended = run(*with_end, {1, 2}, {.max_new_tokens = 4});
  EXPECT_EQ(ended.reason, FinishReason::kEos);
  EXPECT_EQ(ended.ids.back(), plain.ids[1]);
  EXPECT_EQ(ended.text, ended.ids.size() == 2 ? (*model->tokenizer())->decode({plain.ids[0]}, true) : "");
  with_end->reset();
  EXPECT_EQ(run(*with_end, {1, 2}, {.max_new_tokens = 4, .ignore_eos = true}).ids, plain.ids);
}

TEST_F(GenerationTest, a_stop_string_ends_the_text_before_it) {
  GenerationOptions options{.max_new_tokens = 40};
  options.sampling.do_sample = true;
  options.sampling.temperature = 50.0f;
  options.sampling.seed = 3;
  const std::string text = run(*session(), {1}, options).text;
  const size_t middle = text.find_first_of("abcd");
  ASSERT_NE(middle, std::string::npos) << text;
  options.stop_strings = {text.substr(middle, 1)};
  const Outcome stopped = run(*session(), {1}, options);
  EXPECT_EQ(stopped.reason, FinishReason::kStopString);
  EXPECT_EQ(stopped.text, text.substr(0, middle));
}

TEST_F(GenerationTest, cancelling_ends_it_without_an_error) {
  const auto cancelled = session();
  auto generation = Generation::begin(*cancelled, {1, 2}, {});
  ASSERT_TRUE(generation.ok());
  ASSERT_TRUE((*generation)->next().ok());
  cancelled->cancel();
  const auto last = (*generation)->next();
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ((*generation)->next()->finish_reason, FinishReason::kCancelled);
}

TEST_F(GenerationTest, a_stop_token_ends_it_and_is_not_text) {
  const Outcome plain = run(*session(), {1, 2}, {.max_new_tokens = 6});
  const auto first = std::find(plain.ids.begin(), plain.ids.end(), plain.ids[2]);
  const Ids before(plain.ids.begin(), first);
  const Outcome stopped = run(*session(), {1, 2}, {.skip_special_tokens = false, .stop_token_ids = {plain.ids[2]}});
  EXPECT_EQ(stopped.reason, FinishReason::kStopToken);
  EXPECT_EQ(stopped.ids, Ids(plain.ids.begin(), first + 1));
  EXPECT_EQ(stopped.text, (*model_->tokenizer())->decode(before, false));
}

TEST_F(GenerationTest, a_generation_that_is_cancelled_goes_on_exactly) {
  const Outcome whole = run(*session(), {1, 2}, {.max_new_tokens = 6});
  const auto cancelled = session();
  Ids ids;
  {
    auto generation = *Generation::begin(*cancelled, {1, 2}, {});
    for (int i = 0; i < 3; ++i) ids.push_back(generation->next()->id);
    std::thread([&] { generation->cancel(); }).join();
    EXPECT_EQ(generation->next()->finish_reason, FinishReason::kCancelled);
    EXPECT_EQ(generation->next()->finish_reason, FinishReason::kCancelled);
    generation->cancel();  // too late: what follows does not feel it
  }
  EXPECT_EQ(cancelled->position(), 4);  // all but the last id
  const Outcome rest = run(*cancelled, {ids.back()}, {.max_new_tokens = 3});
  ids.insert(ids.end(), rest.ids.begin(), rest.ids.end());
  EXPECT_EQ(ids, whole.ids);
}

TEST_F(GenerationTest, cancelling_at_a_thousand_points_changes_no_text) {
  const Ids prompt{1, 2, 3, 4, 5};
  const Ids whole = run(*session(), prompt, {.max_new_tokens = 12}).ids;
  const auto cancelled = *Session::open(model_, {.context_length = 64, .threads = 2, .prefill_chunk = 2});
  int num_cancelled = 0;
  for (int point = 0; point < 1000; ++point) {
    cancelled->reset();
    Ids text = prompt;
    {
      auto generation = *Generation::begin(*cancelled, prompt, {.max_new_tokens = 12});
      std::atomic<int> steps{-1};
      std::thread canceller([&] {
        steps = 0;
        while (steps.load() < point % 14) std::this_thread::yield();
        for (int i = 0; i < point; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);  // some time
        generation->cancel();
      });
      while (steps.load() < 0) std::this_thread::yield();
      std::optional<FinishReason> reason;
      while (!reason.has_value()) {
        const Piece piece = *generation->next();
        if (piece.id >= 0) text.push_back(piece.id);
        reason = piece.finish_reason;
        if (++steps == point % 14 && point % 2 == 0) {  // every other time between two steps, for certain
          canceller.join();
        }
      }
      steps = 100;
      if (canceller.joinable()) canceller.join();
      num_cancelled += reason == FinishReason::kCancelled;
      ASSERT_EQ(reason == FinishReason::kLength, text.size() == prompt.size() + whole.size());
    }
    const auto position = static_cast<size_t>(cancelled->position());
    ASSERT_TRUE(std::ranges::equal(cancelled->tokens(), std::span(text).first(position)));
    const size_t missing = prompt.size() + whole.size() - text.size();
    if (missing > 0) {
      const Outcome rest = run(*cancelled, Ids(text.begin() + static_cast<ptrdiff_t>(position), text.end()),
                               {.max_new_tokens = static_cast<int64_t>(missing)});
      text.insert(text.end(), rest.ids.begin(), rest.ids.end());
    }
    ASSERT_EQ(Ids(text.begin() + static_cast<ptrdiff_t>(prompt.size()), text.end()), whole) << "point " << point;
  }
  EXPECT_GT(num_cancelled, 400);
}

TEST_F(GenerationTest, a_cancel_that_no_call_saw_ends_with_its_generation) {
  const auto reused = session();
  {
    const auto generation = *Generation::begin(*reused, {1, 2}, {});
    generation->cancel();
  }
  EXPECT_EQ(run(*reused, {1, 2}, {.max_new_tokens = 2}).reason, FinishReason::kLength);
}

TEST_F(GenerationTest, the_time_limit_ends_it_after_a_token_or_between_chunks_of_the_prompt) {
  const Outcome one = run(*session(), {1, 2}, {.max_time = 1e-9});
  EXPECT_EQ(one.reason, FinishReason::kTime);
  EXPECT_EQ(one.ids.size(), 1u);
  const auto chunked = *Session::open(model_, {.context_length = 16, .threads = 1, .prefill_chunk = 2});
  const Outcome none = run(*chunked, {1, 2, 3, 4, 5}, {.max_time = 1e-9});
  EXPECT_EQ(none.reason, FinishReason::kTime);
  EXPECT_TRUE(none.ids.empty());
  EXPECT_EQ(chunked->position(), 2);
  const Outcome whole = run(*session(), {1, 2, 3, 4, 5}, {.max_new_tokens = 4});
  EXPECT_EQ(run(*chunked, {3, 4, 5}, {.max_new_tokens = 4, .max_time = 1e6}).ids, whole.ids);
}

// Which it would wait for longer than anybody runs tests.
TEST_F(GenerationTest, a_wait_for_the_pace_ends_with_a_cancel_or_the_time_limit) {
  const auto held = session();
  const auto generation = *Generation::begin(*held, {1, 2}, {.pace = 1e-300});
  EXPECT_GE(generation->next()->id, 0) << "the first token is not held back";
  EXPECT_GT(generation->time_to_wait(), std::chrono::hours(24));
  std::thread canceller([&] { generation->cancel(); });
  EXPECT_EQ(generation->next()->finish_reason, FinishReason::kCancelled);
  canceller.join();
  const Outcome limited = run(*session(), {1, 2}, {.max_time = 0.01, .pace = 1e-6});
  EXPECT_EQ(limited.reason, FinishReason::kTime);
  EXPECT_LE(limited.ids.size(), 2u);
}

TEST_F(GenerationTest, the_pace_changes_no_token) {
  EXPECT_EQ(run(*session(), {1, 2}, {.max_new_tokens = 6, .pace = 1000}).ids,
            run(*session(), {1, 2}, {.max_new_tokens = 6}).ids);
}

TEST(Pacer, holds_tokens_to_their_times) {
  const auto at = [](int milliseconds) { return Clock::time_point() + std::chrono::milliseconds(milliseconds); };
  const auto left = [&](const Pacer& pacer, int milliseconds) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(pacer.left(at(milliseconds))).count();
  };
  Pacer pacer(10);
  EXPECT_EQ(left(pacer, 5000), 0);
  pacer.took_token(at(5000));
  EXPECT_EQ(left(pacer, 5000), 100);
  EXPECT_EQ(left(pacer, 5070), 30);
  pacer.took_token(at(5103));  // woken late, which the next one does not pay for
  EXPECT_EQ(left(pacer, 5103), 97);
  pacer.took_token(at(5950));  // a slow model is not waited for, and gets no tokens ahead
  EXPECT_EQ(left(pacer, 5950), 0);
  pacer.took_token(at(5951));
  EXPECT_EQ(left(pacer, 5951), 99);
  Pacer none(0);
  none.took_token(at(5000));
  EXPECT_EQ(left(none, 5000), 0);
}

TEST_F(GenerationTest, refuses_at_the_beginning) {
  const auto small = session(4);
  const auto code = [&](Ids prompt, const GenerationOptions& options) {
    return Generation::begin(*small, std::move(prompt), options).status().code();
  };
  EXPECT_EQ(code({}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({19}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {.max_new_tokens = -1}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {.stop_strings = {""}}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {.stop_token_ids = {19}}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {.stop_token_ids = {-1}}), Code::kInvalidArgument);
  for (const double seconds : {-1.0, HUGE_VAL, std::nan("")})
    EXPECT_EQ(code({1}, {.max_time = seconds}), Code::kInvalidArgument);
  EXPECT_EQ(code({1}, {.pace = -1.0}), Code::kInvalidArgument);
  const Status full = Generation::begin(*small, {1, 2, 3, 4, 5}, {}).status();
  EXPECT_EQ(full.code(), Code::kContextFull);
  EXPECT_NE(full.message().find("5 tokens"), std::string::npos);
  EXPECT_NE(full.message().find("4 positions"), std::string::npos);
}

}  // namespace
}  // namespace mote
