#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "runner/generation/defaults.h"
#include "runner/generation/generation.h"
#include "runner/session/golden.h"
#include "runner/session/session.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

using Ids = std::vector<int32_t>;
using Logits = std::vector<float>;

std::shared_ptr<const Model> open_model(const test::TinyFile& file) {
  auto model = Model::open(file.path());
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

std::unique_ptr<Session> open_session(const std::shared_ptr<const Model>& model, SessionOptions options = {}) {
  auto session = Session::open(model, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? *std::move(session) : nullptr;
}

Logits copy(const Result<std::span<const float>>& logits) {
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  return logits.ok() ? Logits(logits->begin(), logits->end()) : Logits();
}

Ids some_ids(size_t count) {
  Ids ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>((i * 7 + 3) % 19));
  return ids;
}

class SessionOfWindow : public testing::TestWithParam<int32_t> {
 protected:
  SessionOfWindow() : file_(test::tiny_program({.window = GetParam()})), model_(open_model(file_)) {}
  test::TinyFile file_;
  std::shared_ptr<const Model> model_;
};

// The logits after every id are the same to the bit however the ids arrive and on any number of threads.
TEST_P(SessionOfWindow, chunks_threads_and_methods_give_the_same_bits) {
  const Ids ids = some_ids(40);
  const auto reference = open_session(model_, {.context_length = 64, .threads = 1, .prefill_chunk = 64});
  Logits expected(ids.size() * 19);
  ASSERT_TRUE(reference->verify(ids, expected.data()).ok());
  const auto row = [&](size_t i) {
    return Logits(expected.begin() + static_cast<ptrdiff_t>(i * 19),
                  expected.begin() + static_cast<ptrdiff_t>(i * 19 + 19));
  };
  for (const int64_t chunk : {1, 3, 16, 64}) {
    for (const int threads : {1, 2, 3}) {
      const auto session = open_session(model_, {.context_length = 64, .threads = threads, .prefill_chunk = chunk});
      EXPECT_EQ(copy(session->prefill(std::span(ids).first(25))), row(24)) << chunk << " " << threads;
      for (size_t i = 25; i < 30; ++i) EXPECT_EQ(copy(session->decode(ids[i])), row(i)) << chunk << " " << threads;
      Logits rest(10 * 19);
      ASSERT_TRUE(session->verify(std::span(ids).subspan(30), rest.data()).ok());
      EXPECT_EQ(rest, Logits(expected.begin() + 30 * 19, expected.end())) << chunk << " " << threads;
    }
  }
}

TEST_P(SessionOfWindow, the_head_finds_the_largest_logit_of_each_block) {
  const auto session = open_session(model_, {.prefill_chunk = 5});
  const auto largest = [](const Logits& logits) { return Logits{*std::max_element(logits.begin(), logits.end())}; };
  const auto maxima = [&] { return Logits(session->logit_maxima().begin(), session->logit_maxima().end()); };
  for (int round = 0; round < 3; ++round) {
    const Logits after_prompt = copy(session->prefill(some_ids(12)));
    EXPECT_EQ(maxima(), largest(after_prompt));
    const Logits after_step = copy(session->decode(3 + round));
    EXPECT_EQ(maxima(), largest(after_step));
  }
}

// Wherever a session goes back to, it goes on as one that was never further; a window may have moved on too far.
TEST_P(SessionOfWindow, rewinding_leaves_no_trace) {
  const Ids ids = some_ids(40);
  const auto reference = open_session(model_, {.context_length = 64});
  Logits expected(ids.size() * 19);
  ASSERT_TRUE(reference->verify(ids, expected.data()).ok());
  const auto row = [&](size_t i) {
    return Logits(expected.begin() + static_cast<ptrdiff_t>(i * 19),
                  expected.begin() + static_cast<ptrdiff_t>(i * 19 + 19));
  };
  for (const int64_t chunk : {1, 5, 64}) {
    for (const size_t to : {1, 3, 12, 25, 29, 30}) {
      const auto session = open_session(model_, {.context_length = 64, .prefill_chunk = chunk});
      copy(session->prefill(std::span(ids).first(25)));
      for (const int32_t other : {7, 7, 7, 7, 7}) copy(session->decode(other));
      const size_t same = std::min<size_t>(to, 25);
      ASSERT_TRUE(session->rewind(static_cast<int64_t>(to)).ok());
      EXPECT_EQ(session->position(), static_cast<int64_t>(to));
      ASSERT_TRUE(session->rewind(static_cast<int64_t>(same)).ok());
      EXPECT_TRUE(std::equal(session->tokens().begin(), session->tokens().end(), ids.begin(),
                             ids.begin() + static_cast<ptrdiff_t>(same)));
      EXPECT_EQ(copy(session->prefill(std::span(ids).subspan(same, 3))), row(same + 2)) << chunk << " " << to;
      for (size_t i = same + 3; i < ids.size(); ++i)
        EXPECT_EQ(copy(session->decode(ids[i])), row(i)) << chunk << " " << to;
    }
  }
}

TEST_P(SessionOfWindow, rewinding_to_where_it_never_was_is_refused) {
  const auto session = open_session(model_);
  copy(session->prefill(some_ids(4)));
  for (const int64_t position : {-1, 5}) {
    const Status status = session->rewind(position);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("must be 0..4"), std::string::npos);
  }
  ASSERT_TRUE(session->rewind(0).ok());
  EXPECT_EQ(session->position(), 0);
}

TEST_P(SessionOfWindow, reset_forgets_everything) {
  const auto session = open_session(model_);
  const Ids ids = some_ids(12);
  const Logits first = copy(session->prefill(ids));
  copy(session->decode(5));
  session->reset();
  EXPECT_EQ(session->position(), 0);
  EXPECT_EQ(copy(session->prefill(ids)), first);
}

TEST_P(SessionOfWindow, every_cache_type_stays_near_float32) {
  const Ids ids = some_ids(30);
  const auto logits_of = [&](KvType type) {
    return copy(open_session(model_, {.kv_dtype = type, .prefill_chunk = 7})->prefill(ids));
  };
  const Logits exact = logits_of(KvType::kFloat32);
  const auto distance = [&](const Logits& other) {
    float largest = 0.0f;
    for (size_t i = 0; i < exact.size(); ++i) largest = std::max(largest, std::abs(other[i] - exact[i]));
    return largest;
  };
  float scale = 0.0f;
  for (const float logit : exact) scale = std::max(scale, std::abs(logit));
  EXPECT_LT(distance(logits_of(KvType::kFloat16)), 0.02f * scale);
  EXPECT_LT(distance(logits_of(KvType::kInt8)), 0.1f * scale);
  EXPECT_LT(distance(logits_of(KvType::kInt4)), 0.6f * scale);
}

INSTANTIATE_TEST_SUITE_P(Windows, SessionOfWindow, testing::Values(0, 5, 24));

TEST(Session, refuses_bad_calls_and_stays_usable) {
  const test::TinyFile file(test::tiny_program());
  const auto model = open_model(file);
  const auto session = open_session(model, {.context_length = 8});
  EXPECT_EQ(session->prefill({}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(session->prefill(Ids{0, 19}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(session->decode(-1).status().code(), Code::kInvalidArgument);
  const Status full = session->prefill(some_ids(9)).status();
  EXPECT_EQ(full.code(), Code::kContextFull);
  EXPECT_NE(full.message().find("9 more tokens"), std::string::npos);
  EXPECT_NE(full.message().find("context of 8 positions"), std::string::npos);
  EXPECT_EQ(session->position(), 0);
  EXPECT_TRUE(session->prefill(some_ids(8)).ok());
  EXPECT_EQ(session->decode(1).status().code(), Code::kContextFull);
}

TEST(Session, options_out_of_range_are_refused) {
  const test::TinyFile file(test::tiny_program());
  const auto model = open_model(file);
  for (const SessionOptions& options :
       {SessionOptions{.context_length = 65}, SessionOptions{.context_length = -1}, SessionOptions{.threads = -1},
        SessionOptions{.threads = 100000}, SessionOptions{.prefill_chunk = -1}}) {
    EXPECT_EQ(Session::open(model, options).status().code(), Code::kInvalidArgument);
  }
}

TEST(Session, cancel_ends_the_next_call_only) {
  const test::TinyFile file(test::tiny_program());
  const auto session = open_session(open_model(file));
  session->cancel();
  EXPECT_EQ(session->prefill(some_ids(3)).status().code(), Code::kCancelled);
  EXPECT_EQ(session->position(), 0);
  EXPECT_TRUE(session->prefill(some_ids(3)).ok());
}

TEST(Session, cancel_from_another_thread_leaves_a_usable_session) {
  const test::TinyFile file(test::tiny_program());
  const auto model = open_model(file);
  const Ids ids = some_ids(60);
  const Logits expected = copy(open_session(model)->prefill(ids));
  const auto session = open_session(model, {.prefill_chunk = 2});
  for (int round = 0; round < 50; ++round) {
    std::thread other([&] { session->cancel(); });
    const Status status = session->prefill(ids).status();
    other.join();
    EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.message();
    (void)session->decode(0);  // takes a cancellation that came too late
    session->reset();
    EXPECT_EQ(copy(session->prefill(ids)), expected);
    session->reset();
  }
}

TEST(Session, outlives_the_handle_of_its_model) {
  const test::TinyFile file(test::tiny_program());
  auto model = open_model(file);
  const auto session = open_session(model);
  model.reset();
  EXPECT_TRUE(session->prefill(some_ids(4)).ok());
}

test::ProgramBuilder with_golden_sample(float error, int32_t expected_shift) {
  test::ProgramBuilder builder = test::tiny_program();
  const test::TinyFile file(builder);
  const auto session = open_session(open_model(file));
  auto sample = std::make_unique<fb::GoldenSampleT>();
  sample->prompt_ids = {1, 2, 3};
  sample->probe_ids = {0, 7};
  sample->tolerance = 1e-3f;
  Logits logits = copy(session->prefill(sample->prompt_ids));
  for (int step = 0; step < 3; ++step) {
    const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    sample->expected_ids.push_back((best + (step == 2 ? expected_shift : 0)) % 19);
    for (const int32_t id : sample->probe_ids) sample->probe_logits.push_back(logits[static_cast<size_t>(id)]);
    if (step < 2) logits = copy(session->decode(best));
  }
  sample->probe_logits[3] += error * 100.0f;
  test::ProgramBuilder result = test::tiny_program();
  result.program.golden_samples.push_back(std::move(sample));
  return result;
}

bool golden_passes(test::ProgramBuilder builder) {
  const test::TinyFile file(std::move(builder));
  const auto report = check_golden(*open_session(open_model(file)));
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() && report->passed;
}

TEST(Golden, samples_pass_where_logits_and_ids_agree) {
  EXPECT_TRUE(golden_passes(with_golden_sample(0.0f, 0)));
  EXPECT_FALSE(golden_passes(with_golden_sample(1.0f, 0)));
  EXPECT_FALSE(golden_passes(with_golden_sample(0.0f, 1)));
}

TEST(Session, refuses_cpus_that_are_not_there) {
  const test::TinyFile file(test::tiny_program());
  const auto model = open_model(file);
  for (const char* cpus : {"", "4095", "one"}) {
    const auto session = Session::open(model, {.cpus = cpus});
    EXPECT_EQ(session.status().code(), Code::kInvalidArgument) << cpus;
    EXPECT_NE(session.status().message().find("cpus"), std::string::npos) << session.status().message();
  }
}

TEST(Session, computes_the_same_on_chosen_cpus) {
  const std::vector<int> usable = usable_cpus();
  if (usable.empty()) GTEST_SKIP() << "this system does not bind threads";
  const test::TinyFile file(test::tiny_program());
  const auto model = open_model(file);
  const auto bound =
      open_session(model, {.threads = 2, .cpus = std::to_string(usable.back()), .priority = ThreadPriority::kLow});
  EXPECT_EQ(copy(bound->prefill(some_ids(9))), copy(open_session(model)->prefill(some_ids(9))));
  EXPECT_EQ(usable_cpus(), usable);
  EXPECT_EQ(open_session(model, {.cpus = std::to_string(usable.back())})->num_threads(), 1);
}

TEST(Model, a_broken_tokenizer_or_generation_config_is_refused_with_the_file_name) {
  test::ProgramBuilder tokenizer = test::tiny_program();
  tokenizer.tokenizer = "{}";
  test::ProgramBuilder config = test::tiny_program();
  config.program.generation_config = "[]";
  const test::TinyFile broken_tokenizer(std::move(tokenizer));
  const test::TinyFile broken_config(std::move(config));
  const auto model = *Model::open(broken_tokenizer.path());
  EXPECT_TRUE(model->has_tokenizer());
  const auto session = open_session(model);
  const GenerationOptions options;
  for (const Status& status :
       {model->tokenizer().status(), model->require_tokenizer().status(), model->describe().status(),
        check_golden(*session).status(), Generation::begin(*session, {1}, options).status()}) {
    EXPECT_EQ(status.code(), Code::kInvalidTokenizer);
    EXPECT_EQ(status.message().rfind(broken_tokenizer.path(), 0), 0u);
  }
  EXPECT_TRUE(session->decode(1).ok());  // ids need none
  const Status refused = generation_defaults(**Model::open(broken_config.path())).status();
  EXPECT_EQ(refused.code(), Code::kInvalidProgram);
  EXPECT_EQ(refused.message().rfind(broken_config.path(), 0), 0u);
}

}  // namespace
}  // namespace mote
