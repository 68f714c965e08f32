// Every allocation from opening a model to its tokens fails in turn: each time an error says so, and the same call
// works once there is memory again.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/runner/capi/fixture.h"
#include "tests/runner/program/counted_allocations.h"

namespace mote {
namespace {

constexpr std::string_view kText = "ab abc a\xC3\xA9 d c b ab abc a\xC3\xA9 d c b";  // worth the prefix cache
constexpr int64_t kDecoded = 3;

// A model and what is done with it, in calls of the C API.
class Life {
 public:
  explicit Life(std::string path) : path_(std::move(path)) { text_.reserve(256); }  // none of its own later
  ~Life() {
    mote_generation_end(generation_);
    mote_session_close(forked_);
    mote_session_close(session_);
    mote_prefix_cache_close(cache_);
    mote_model_close(model_);
  }

  std::vector<std::function<int32_t()>> calls() {
    std::vector<std::function<int32_t()>> result{
        [this] { return mote_model_open(path_.c_str(), nullptr, &model_, &error); },
        [this] { return mote_prefix_cache_open(1 << 20, &cache_, &error); }, [this] { return open_session(); },
        [this] {
          return mote_tokenize(model_, kText.data(), kText.size(), 1, 1, ids_.data(), ids_.size(), &num_ids_, &error);
        },
        [this] { return mote_session_prefill(session_, ids_.data(), num_ids_, logits_.data(), &error); }};
    for (int64_t i = 0; i < kDecoded; ++i) result.push_back([this] { return decode(); });
    result.push_back([this] { return mote_session_fork(session_, &forked_, &error); });
    result.push_back([this] { return mote_session_set_tokens(forked_, ids_.data(), num_ids_, nullptr, &error); });
    result.push_back([this] { return begin(); });
    for (int i = 0; i < 4; ++i) result.push_back([this] { return next(); });
    return result;
  }

  // For a generation that was left without memory: another one, from where the session was before it.
  mote_error_code generate_again() {
    mote_generation_end(generation_);
    generation_ = nullptr;
    const auto tokens = static_cast<size_t>(std::ranges::count(text_, ' '));
    text_.clear();
    mote_error_code code = mote_session_rewind(session_, static_cast<int64_t>(num_ids_) + kDecoded, &error);
    if (code == MOTE_OK) code = begin();
    for (size_t i = 0; i <= tokens && code == MOTE_OK; ++i) code = next();
    return code;
  }

  std::string results() const {
    std::string all = text_ + std::to_string(mote_session_position(forked_));
    for (const float logit : logits_) all += " " + std::to_string(logit);
    return all;
  }

  mote_error error = sized<mote_error>();

 private:
  // With options of its own, whose making may fail as anything else.
  template <typename Use>
  mote_error_code with_options(std::string_view json, const Use& use) {
    mote_options* options = nullptr;
    mote_error_code code = mote_options_open(MOTE_SCOPE_GENERATION | MOTE_SCOPE_SESSION, &options, &error);
    if (code == MOTE_OK) code = mote_options_set_json(options, json.data(), json.size(), &error);
    if (code == MOTE_OK) code = use(options);
    mote_options_close(options);
    return code;
  }
  mote_error_code open_session() {
    return with_options(R"({"context_length": 64, "threads": 2, "prefill_chunk": 5})", [this](mote_options* options) {
      const mote_error_code code = mote_options_set_prefix_cache(options, cache_, &error);
      return code == MOTE_OK ? mote_session_open(model_, options, &session_, &error) : code;
    });
  }
  mote_error_code decode() {
    const auto best = static_cast<int32_t>(std::ranges::max_element(logits_) - logits_.begin());
    return mote_session_decode(session_, best, logits_.data(), &error);
  }
  mote_error_code begin() {
    constexpr std::string_view kOptions =
        R"({"do_sample": true, "temperature": 2, "seed": 0, "ignore_eos": true, "repetition_penalty": 1.2,
            "top_logprobs": 2, "stop_strings": ["never said"], "speculative": "lookup"})";
    return with_options(kOptions, [this](const mote_options* options) {
      return mote_generation_begin(session_, ids_.data(), num_ids_, options, &generation_, &error);
    });
  }
  mote_error_code next() {
    auto piece = sized<mote_piece>();
    const mote_error_code code = mote_generation_next(generation_, &piece, &error);
    if (code != MOTE_OK) return code;
    char token[32];
    std::snprintf(token, sizeof token, "%d:%s|%zu ", piece.id, piece.text, piece.num_top_logprobs);
    text_ += token;
    return code;
  }

  std::string path_;
  mote_model* model_ = nullptr;
  mote_prefix_cache* cache_ = nullptr;
  mote_session* session_ = nullptr;
  mote_session* forked_ = nullptr;
  mote_generation* generation_ = nullptr;
  std::vector<int32_t> ids_ = std::vector<int32_t>(64);
  size_t num_ids_ = 0;
  std::vector<float> logits_ = std::vector<float>(19);
  std::string text_;  // "id:text|alternatives " of each token
};

class AllocationFailure : public testing::TestWithParam<bool> {
 protected:
  // One life in which the index-th allocation fails. False if there were not so many.
  bool live(int64_t index) {
    Life life(file_.path());
    bool has_failed = false;
    const auto calls = life.calls();
    test::FailingAllocation failing(index, GetParam());
    for (const auto& call : calls) {
      int32_t code = call();
      if (code == MOTE_OK) continue;
      const bool failed_now = failing.stop() && !has_failed;
      has_failed = true;
      EXPECT_TRUE(failed_now) << life.error.message;
      // A file that cannot be mapped is told by the code of files.
      EXPECT_TRUE(code == MOTE_ERROR_OUT_OF_MEMORY || code == MOTE_ERROR_FILE_UNREADABLE)
          << code << ": " << life.error.message;
      EXPECT_STRNE(life.error.message, "");
      code = call();
      if (code == MOTE_ERROR_INVALID_STATE) code = life.generate_again();
      EXPECT_EQ(code, MOTE_OK) << life.error.message;
      if (code != MOTE_OK) return false;
    }
    const bool happened = failing.stop();
    if (results_.empty()) results_ = life.results();
    EXPECT_EQ(life.results(), results_);
    return happened;
  }

  test::TinyFile file_{test::tiny_program()};
  std::string results_;
};

TEST_P(AllocationFailure, is_an_error_at_each_of_them_and_the_next_call_works) {
  int64_t index = 1;
  while (live(index) && !HasFailure()) {
    EXPECT_EQ(num_handle_objects(), 0u);
    ++index;
  }
  EXPECT_FALSE(HasFailure()) << "at allocation " << index;
  EXPECT_GT(index, 300);
  RecordProperty("allocations", static_cast<int>(index - 1));
}

// Two sequences in a batch, from their prompts to their ends: "sequence:id " of each token, and of each error
// "sequence:code ".
std::string run_batch(mote_batch* batch, const mote_options* options, test::FailingAllocation* failing) {
  auto error = sized<mote_error>();
  const int32_t ids[] = {3, 1, 4, 1, 5};
  std::string found;
  // With memory again after the first error.
  const auto retried = [&](const auto& call) {
    int32_t code = call();
    if (code == MOTE_ERROR_OUT_OF_MEMORY && failing != nullptr && failing->stop()) code = call();
    return code;
  };
  int64_t sequence = -1;
  for (const size_t count : {5, 2}) {
    EXPECT_EQ(retried([&] { return mote_batch_add(batch, nullptr, ids, count, options, &sequence, &error); }), MOTE_OK)
        << error.message;
  }
  for (int step = 0; step < 32 && mote_batch_num_sequences(batch) > 0; ++step) {
    size_t count = 0;
    EXPECT_EQ(retried([&] { return mote_batch_step(batch, &count, &error); }), MOTE_OK) << error.message;
    for (size_t i = 0; i < count; ++i) {
      auto piece = sized<mote_piece>();
      const int32_t code = retried([&] { return mote_batch_piece(batch, i, &sequence, &piece, &error); });
      char text[32];
      std::snprintf(text, sizeof text, "%d:%d ", static_cast<int>(sequence % 2), code == MOTE_OK ? piece.id : -code);
      if (failing == nullptr) found += text;
      EXPECT_TRUE(code == MOTE_OK || code == MOTE_ERROR_OUT_OF_MEMORY) << code << ": " << error.message;
    }
  }
  EXPECT_EQ(mote_batch_num_sequences(batch), 0);
  return found;
}

TEST_P(AllocationFailure, in_a_batch_ends_a_sequence_at_most) {
  auto error = sized<mote_error>();
  std::optional<GivenOptions> options(
      R"({"context_length": 64, "ignore_eos": true, "max_new_tokens": 4, "top_logprobs": 2})");
  mote_model* model = nullptr;
  mote_batch* batch = nullptr;
  ASSERT_EQ(mote_model_open(file_.path().c_str(), nullptr, &model, &error), MOTE_OK) << error.message;
  ASSERT_EQ(mote_batch_open(model, 0, *options, &batch, &error), MOTE_OK) << error.message;
  const std::string expected = run_batch(batch, *options, nullptr);
  bool happened = true;
  for (int64_t index = 1; happened && !HasFailure(); ++index) {
    test::FailingAllocation failing(index, GetParam());
    (void)run_batch(batch, *options, &failing);
    happened = failing.stop();
    EXPECT_EQ(run_batch(batch, *options, nullptr), expected) << "after allocation " << index;
  }
  options.reset();
  mote_batch_close(batch);
  mote_model_close(model);
  EXPECT_EQ(num_handle_objects(), 0u);
}

INSTANTIATE_TEST_SUITE_P(AndAllAfter, AllocationFailure, testing::Bool());

}  // namespace
}  // namespace mote
