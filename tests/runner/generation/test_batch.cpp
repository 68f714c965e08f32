// Sequences that decode together: each as it is alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "runner/generation/batch.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

using Ids = std::vector<int32_t>;

std::shared_ptr<const Model> open_model(const test::TinyFile& file) {
  auto model = Model::open(file.path());
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

Ids some_ids(size_t count, size_t seed) {
  Ids ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((i * 7 + 3 + seed * 5 + i * i % (seed + 2)) % 19));
  return ids;
}

// What a sequence gave: everything that its pieces hold.
struct Output {
  Ids ids;
  std::string text;
  std::vector<float> logprobs;
  std::optional<FinishReason> finish_reason;

  void add(const Piece& piece) {
    ids.push_back(piece.id);
    text += piece.text;
    logprobs.push_back(piece.logprob);
    for (const TokenLogprob& entry : piece.top_logprobs) logprobs.push_back(entry.logprob);
    finish_reason = piece.finish_reason;
  }
  bool operator==(const Output&) const = default;
};

struct Request {
  Ids prompt;
  GenerationOptions options;
  SessionOptions session{};
};

Output alone(const std::shared_ptr<const Model>& model, const Request& request) {
  Output output;
  auto session = Session::open(model, request.session);
  EXPECT_TRUE(session.ok());
  auto generation = Generation::begin(**session, request.prompt, request.options);
  EXPECT_TRUE(generation.ok()) << generation.status().message();
  while (!output.finish_reason.has_value()) {
    auto piece = (*generation)->next();
    EXPECT_TRUE(piece.ok());
    if (!piece.ok()) break;
    output.add(*piece);
  }
  return output;
}

// Whether sampled ids agree says little of logits; log-probabilities of all 19 ids do to the bit.
Request random_request(std::mt19937& random) {
  Request request;
  request.prompt = some_ids(1 + random() % 30, random() % 100);
  request.options.max_new_tokens = 1 + static_cast<int64_t>(random() % 25);
  request.options.ignore_eos = random() % 2 == 0;
  request.options.sampling.do_sample = random() % 2 == 0;
  request.options.sampling.temperature = 1.5f;
  request.options.sampling.seed = random();
  request.options.sampling.repetition_penalty = random() % 2 == 0 ? 1.3f : 1.0f;
  request.options.top_logprobs = 19;
  request.session = {.context_length = 64,
                     .kv_dtype = static_cast<KvType>(random() % 4),
                     .threads = 1,
                     .prefill_chunk = static_cast<int64_t>(std::initializer_list<int>{1, 3, 64}.begin()[random() % 3])};
  return request;
}

std::unique_ptr<Batch> open_batch(const std::shared_ptr<const Model>& model, const BatchOptions& options) {
  auto batch = Batch::open(model, options);
  EXPECT_TRUE(batch.ok()) << batch.status().message();
  return batch.ok() ? *std::move(batch) : nullptr;
}

void step(Batch& batch, std::map<int64_t, Output>& outputs) {
  const auto pieces = batch.step();
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  for (const BatchPiece& piece : *pieces) {
    EXPECT_TRUE(piece.status.ok()) << piece.status.message();
    EXPECT_EQ(piece.statistics.has_value(), piece.piece.finish_reason.has_value());
    outputs[piece.sequence].add(piece.piece);
  }
}

class BatchOfWindow : public testing::TestWithParam<int32_t> {
 protected:
  BatchOfWindow() : file_(test::tiny_program({.window = GetParam(), .width = 2})), model_(open_model(file_)) {}
  test::TinyFile file_;
  std::shared_ptr<const Model> model_;
};

// Sequences join between any two steps and leave as they finish; own sessions have other KV types, contexts and chunks.
TEST_P(BatchOfWindow, sequences_that_join_and_leave_are_as_they_are_alone) {
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    const auto batch =
        open_batch(model_, {.max_sequences = 1 + static_cast<int64_t>(random() % 6),
                            .session = {.context_length = 64, .threads = 1 + round % 4, .prefill_chunk = 5}});
    ASSERT_NE(batch, nullptr);
    std::vector<Request> requests;
    std::map<int64_t, Output> outputs;
    while (requests.size() < 14 || batch->num_sequences() > 0) {
      while (requests.size() < 14 && random() % 3 != 0) {
        requests.push_back(random_request(random));
        Request& request = requests.back();
        std::shared_ptr<Session> session;
        if (random() % 2 == 0) {
          session = *Session::open(model_, request.session);
        } else {
          request.session.kv_dtype = SessionOptions().kv_dtype;
        }
        const auto number = batch->add(request.prompt, request.options, session);
        ASSERT_TRUE(number.ok()) << number.status().message();
        ASSERT_EQ(*number, static_cast<int64_t>(requests.size()) - 1);
      }
      step(*batch, outputs);
    }
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(outputs[static_cast<int64_t>(i)], alone(model_, requests[i])) << round << " " << i;
  }
}

TEST_P(BatchOfWindow, cancelling_one_leaves_the_others_exact_and_its_session_usable) {
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    const auto batch = open_batch(model_, {.max_sequences = 4, .session = {.context_length = 64, .prefill_chunk = 4}});
    std::vector<Request> requests;
    std::vector<std::shared_ptr<Session>> sessions;
    for (int i = 0; i < 6; ++i) {
      requests.push_back(random_request(random));
      requests.back().options.max_new_tokens = 20;
      requests.back().options.ignore_eos = true;
      sessions.push_back(*Session::open(model_, requests.back().session));
      ASSERT_TRUE(batch->add(requests.back().prompt, requests.back().options, sessions.back()).ok());
    }
    const int64_t victim = static_cast<int64_t>(random() % 6);
    const int steps_before = static_cast<int>(random() % 20);
    std::map<int64_t, Output> outputs;
    for (int i = 0; i < steps_before; ++i) step(*batch, outputs);
    const bool was_over = outputs[victim].finish_reason.has_value();
    batch->cancel(victim);
    while (batch->num_sequences() > 0) step(*batch, outputs);
    for (int64_t i = 0; i < 6; ++i) {
      if (i == victim && !was_over) continue;
      EXPECT_EQ(outputs[i], alone(model_, requests[static_cast<size_t>(i)])) << round << " " << i;
    }
    if (was_over) continue;
    EXPECT_EQ(outputs[victim].finish_reason, FinishReason::kCancelled);
    // The session holds a prefix of prompt and output, and goes on from there.
    Session& session = *sessions[static_cast<size_t>(victim)];
    const Ids held(session.tokens().begin(), session.tokens().end());
    const auto fresh = Session::open(model_, requests[static_cast<size_t>(victim)].session);
    ASSERT_TRUE(held.empty() || (*fresh)->prefill(held).ok());
    const auto got = session.decode(5), expected = (*fresh)->decode(5);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_TRUE(std::equal(got->begin(), got->end(), expected->begin(), expected->end()));
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, BatchOfWindow, testing::Values(0, 6));

class BatchTest : public testing::Test {
 protected:
  BatchTest() : file_(test::tiny_program()), model_(open_model(file_)) {}
  test::TinyFile file_;
  std::shared_ptr<const Model> model_;
};

TEST_F(BatchTest, a_session_goes_on_where_its_last_generation_ended) {
  Request request{some_ids(9, 1), {.max_new_tokens = 6, .ignore_eos = true}, {.context_length = 64}};
  const std::shared_ptr<Session> session = *Session::open(model_, request.session),
                                 other = *Session::open(model_, request.session);
  const auto batch = open_batch(model_, {});
  std::map<int64_t, Output> outputs;
  ASSERT_TRUE(batch->add(some_ids(4, 2), request.options).ok());
  ASSERT_TRUE(batch->add(request.prompt, request.options, session).ok());
  while (batch->num_sequences() > 0) step(*batch, outputs);
  ASSERT_TRUE(batch->add(some_ids(5, 3), request.options, session).ok());
  while (batch->num_sequences() > 0) step(*batch, outputs);
  for (const Ids& prompt : {request.prompt, some_ids(5, 3)}) {
    auto generation = *Generation::begin(*other, prompt, request.options);
    while (!generation->finish_reason().has_value()) ASSERT_TRUE(generation->next().ok());
  }
  EXPECT_TRUE(
      std::equal(session->tokens().begin(), session->tokens().end(), other->tokens().begin(), other->tokens().end()));
}

TEST_F(BatchTest, a_full_context_ends_only_its_sequence) {
  const auto batch = open_batch(model_, {});
  const std::shared_ptr<Session> small = *Session::open(model_, {.context_length = 8});
  ASSERT_TRUE(batch->add(some_ids(5, 1), {.ignore_eos = true}, small).ok());
  ASSERT_TRUE(batch->add(some_ids(5, 1), {.max_new_tokens = 20, .ignore_eos = true}).ok());
  std::map<int64_t, Output> outputs;
  while (batch->num_sequences() > 0) step(*batch, outputs);
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kLength);
  EXPECT_EQ(outputs[0].ids.size(), 4u);
  EXPECT_EQ(outputs[1].ids.size(), 20u);
}

TEST_F(BatchTest, a_prompt_that_takes_too_long_ends_between_chunks) {
  const auto batch = open_batch(model_, {.session = {.prefill_chunk = 4}});
  ASSERT_TRUE(batch->add(some_ids(20, 1), {.max_time = 1e-9}).ok());
  std::map<int64_t, Output> outputs;
  step(*batch, outputs);
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kTime);
  EXPECT_EQ(outputs[0].ids, Ids{-1});
}

TEST_F(BatchTest, a_pace_holds_back_its_own_sequence_alone) {
  const auto batch = open_batch(model_, {});
  ASSERT_TRUE(batch->add(some_ids(3, 1), {.ignore_eos = true, .pace = 1e-6}).ok());
  ASSERT_TRUE(batch->add(some_ids(3, 1), {.max_new_tokens = 5, .ignore_eos = true}).ok());
  std::map<int64_t, Output> outputs;
  while (!outputs[1].finish_reason.has_value()) step(*batch, outputs);
  EXPECT_EQ(outputs[0].ids.size(), 1u);
  EXPECT_EQ(outputs[1].ids.size(), 5u);
  step(*batch, outputs);
  EXPECT_EQ(outputs[0].ids.size(), 1u) << "a step with nothing to do yet";
  batch->cancel(0);
  step(*batch, outputs);
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kCancelled);
}

TEST_F(BatchTest, a_changed_file_ends_the_sequences_with_its_error) {
  const auto batch = open_batch(model_, {});
  ASSERT_TRUE(batch->add(some_ids(5, 1), {.ignore_eos = true}).ok());
  ASSERT_TRUE(batch->add(some_ids(5, 2), {.ignore_eos = true}).ok());
  std::map<int64_t, Output> outputs;
  for (int i = 0; i < 4; ++i) step(*batch, outputs);
  std::filesystem::resize_file(file_.path(), std::filesystem::file_size(file_.path()) + 1);
  const auto pieces = batch->step();
  ASSERT_TRUE(pieces.ok());
  ASSERT_EQ(pieces->size(), 2u);
  for (const BatchPiece& piece : *pieces) EXPECT_EQ(piece.status.code(), Code::kFileChanged);
  EXPECT_EQ(batch->num_sequences(), 0u);
}

TEST_F(BatchTest, steps_with_nothing_to_do_give_nothing) {
  const auto batch = open_batch(model_, {});
  const auto pieces = batch->step();
  ASSERT_TRUE(pieces.ok());
  EXPECT_TRUE(pieces->empty());
  batch->cancel(0);
  batch->cancel(-1);
}

TEST_F(BatchTest, refuses_what_it_cannot_do) {
  const auto message = [](const auto& result) { return result.status().message(); };
  EXPECT_EQ(message(Batch::open(model_, {.max_sequences = 0})), "max_sequences = 0: must be 1..256");
  EXPECT_EQ(message(Batch::open(model_, {.max_sequences = 257})), "max_sequences = 257: must be 1..256");
  EXPECT_EQ(Batch::open(model_, {.session = {.context_length = 65}}).status().code(), Code::kInvalidArgument);
  const auto batch = open_batch(model_, {.session = {.context_length = 16}});
  EXPECT_EQ(batch->add({}, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(batch->add({19}, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(batch->add(some_ids(17, 1), {}).status().code(), Code::kContextFull);
  EXPECT_EQ(batch->add(some_ids(5, 1), {.max_new_tokens = -1}).status().code(), Code::kInvalidArgument);
  const std::shared_ptr<Session> session = *Session::open(model_, {});
  ASSERT_TRUE(batch->add(some_ids(5, 1), {}, session).ok());
  EXPECT_EQ(message(batch->add(some_ids(5, 1), {}, session)),
            "the session is in the batch already: it continues sequence 0");
  const test::TinyFile other_file(test::tiny_program({.seed = 2}));
  const std::shared_ptr<Session> stranger = *Session::open(open_model(other_file), {});
  EXPECT_EQ(message(batch->add(some_ids(5, 1), {}, stranger)), "the session is of another model than the batch");
  EXPECT_EQ(batch->num_sequences(), 1u);
}

// One thread steps, others add and cancel.
TEST_F(BatchTest, takes_sequences_from_any_thread_during_a_step) {
  const auto batch = open_batch(model_, {.max_sequences = 3, .session = {.context_length = 64, .threads = 2}});
  constexpr int kThreads = 3, kEach = 8;
  std::mutex mutex;
  std::map<int64_t, Request> requests;
  std::atomic<int> num_done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kEach; ++i) {
        Request request = random_request(random);
        request.session.kv_dtype = SessionOptions().kv_dtype;
        const auto number = batch->add(request.prompt, request.options);
        ASSERT_TRUE(number.ok());
        if (i % 4 == 3) batch->cancel(*number);
        const std::lock_guard lock(mutex);
        if (i % 4 != 3) requests.emplace(*number, request);
      }
      ++num_done;
    });
  }
  std::map<int64_t, Output> outputs;
  while (num_done < kThreads || batch->num_sequences() > 0) step(*batch, outputs);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(outputs.size(), static_cast<size_t>(kThreads * kEach));
  for (const auto& [number, request] : requests) EXPECT_EQ(outputs[number], alone(model_, request)) << number;
  for (const auto& [number, output] : outputs) { EXPECT_TRUE(output.finish_reason.has_value()) << number; }
}

// Each thread asks for its own pieces, and whoever comes first makes the step; one steps besides.
TEST_F(BatchTest, threads_take_the_pieces_of_their_own_sequences) {
  const auto batch = open_batch(model_, {.max_sequences = 3, .session = {.context_length = 64, .threads = 2}});
  constexpr int kThreads = 3, kEach = 6;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kEach; ++i) {
        Request request = random_request(random);
        request.session.kv_dtype = SessionOptions().kv_dtype;
        const auto number = batch->add(request.prompt, request.options, nullptr, PieceDelivery::kByNext);
        ASSERT_TRUE(number.ok());
        Output output;
        if (i % 4 == 3) batch->cancel(*number);
        while (!output.finish_reason.has_value()) {
          const BatchPiece piece = batch->next(*number);
          ASSERT_EQ(piece.sequence, *number);
          output.add(piece.piece);
        }
        if (i % 4 == 3) {
          EXPECT_EQ(output.finish_reason, FinishReason::kCancelled);
        } else {
          EXPECT_EQ(output, alone(model_, request));
        }
        EXPECT_FALSE(batch->next(*number).status.ok());
      }
    });
  }
  std::mt19937 random(99);
  std::map<int64_t, Request> requests;
  std::map<int64_t, Output> outputs;
  for (int i = 0; i < kEach; ++i) {
    Request request = random_request(random);
    request.session.kv_dtype = SessionOptions().kv_dtype;
    requests.emplace(*batch->add(request.prompt, request.options), request);
  }
  const auto is_over = [](const auto& entry) { return entry.second.finish_reason.has_value(); };
  while (std::ranges::count_if(outputs, is_over) < kEach) {
    const auto pieces = batch->step();
    if (!pieces.ok()) continue;  // a thread is in a step
    for (const BatchPiece& piece : *pieces) outputs[piece.sequence].add(piece.piece);
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [number, request] : requests) EXPECT_EQ(outputs[number], alone(model_, request)) << number;
}

}  // namespace
}  // namespace mote
