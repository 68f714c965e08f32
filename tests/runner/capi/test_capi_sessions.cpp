#include <cstring>
#include <vector>

#include "tests/runner/capi/fixture.h"

namespace mote {
namespace {

// <eos> (0) is what this tokenizer begins a text with.
test::ProgramBuilder with_bos() {
  test::ProgramBuilder builder = test::tiny_program();
  test::TinyTokenizer tokenizer;
  tokenizer.post_processor =
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<eos>", "type_id": 0}},
      {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}},
      {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<eos>": {"id": "<eos>", "ids": [0],
      "tokens": ["<eos>"]}}})";
  builder.tokenizer = tokenizer.compiled();
  return builder;
}

TEST(CApiSessionText, special_tokens_are_added_only_where_the_text_of_a_session_begins) {
  const test::TinyFile file(with_bos());
  auto error = sized<mote_error>();
  mote_model* model = nullptr;
  mote_session* session = nullptr;
  ASSERT_EQ(mote_model_open(file.path().c_str(), nullptr, &model, &error), MOTE_OK) << error.message;
  ASSERT_EQ(mote_session_open(model, nullptr, &session, &error), MOTE_OK) << error.message;
  const auto ids_of = [&](const char* text) {
    std::vector<int32_t> ids(8);
    size_t count = 0;
    EXPECT_EQ(mote_session_tokenize(session, text, std::strlen(text), 1, ids.data(), ids.size(), &count, &error),
              MOTE_OK);
    ids.resize(count);
    return ids;
  };
  EXPECT_EQ(ids_of("ab"), (std::vector<int32_t>{0, 9}));
  size_t count = 0;
  EXPECT_EQ(mote_session_tokenize(session, "ab", 2, 1, nullptr, 0, &count, &error), MOTE_OK);
  EXPECT_EQ(count, 2u);
  ASSERT_EQ(mote_session_append_text(session, "ab", 2, 1, &error), MOTE_OK) << error.message;
  EXPECT_EQ(ids_of("ab<eos>"), (std::vector<int32_t>{9, 0}));
  ASSERT_EQ(mote_session_append_text(session, "c", 1, 1, &error), MOTE_OK);
  std::vector<int32_t> all(8);
  ASSERT_EQ(mote_session_tokens(session, all.data(), all.size(), &count, &error), MOTE_OK);
  all.resize(count);
  EXPECT_EQ(all, (std::vector<int32_t>{0, 9, 3}));
  ASSERT_EQ(mote_session_reset(session, &error), MOTE_OK);
  EXPECT_EQ(ids_of(""), (std::vector<int32_t>{0}));
  mote_session_close(session);
  mote_model_close(model);
}

TEST_F(CApi, null_is_an_error_in_all_calls_of_sessions) {
  const int32_t id = 1;
  float logit = 0;
  char* text = nullptr;
  size_t count = 0;
  mote_session* opened_session = nullptr;
  mote_beams* beams = nullptr;
  const int32_t* ids = nullptr;
  int64_t sequence = 0;
  const int32_t codes[] = {
      mote_session_prefill(nullptr, &id, 1, nullptr, &error_),
      mote_session_decode(nullptr, 1, nullptr, &error_),
      mote_session_verify(nullptr, &id, 1, &logit, &error_),
      mote_session_score(nullptr, &id, 1, &logit, &error_),
      mote_session_reset(nullptr, &error_),
      mote_session_rewind(nullptr, 0, &error_),
      mote_session_tokens(nullptr, nullptr, 0, &count, &error_),
      mote_session_append(nullptr, &id, 1, &error_),
      mote_session_append_text(nullptr, "a", 1, 0, &error_),
      mote_session_tokenize(nullptr, "a", 1, 0, nullptr, 0, &count, &error_),
      mote_session_tokenize(session_, nullptr, 1, 0, nullptr, 0, &count, &error_),
      mote_session_tokenize(session_, "a", 1, 0, nullptr, 1, &count, &error_),
      mote_session_tokenize(session_, "a", 1, 0, nullptr, 0, nullptr, &error_),
      mote_session_append_messages(nullptr, nullptr, nullptr, &error_),
      mote_session_set_tokens(nullptr, &id, 1, nullptr, &error_),
      mote_session_rewind_to_prefix(nullptr, &id, 1, nullptr, &error_),
      mote_session_logits(nullptr, &logit, &error_),
      mote_session_fork(nullptr, &opened_session, &error_),
      mote_session_save(nullptr, "x", &error_),
      mote_session_restore(nullptr, "x", &error_),
      mote_session_append(session_, nullptr, 1, &error_),
      mote_session_append_text(session_, nullptr, 1, 0, &error_),
      mote_session_append_messages(session_, nullptr, nullptr, &error_),
      mote_session_set_tokens(session_, nullptr, 1, nullptr, &error_),
      mote_session_rewind_to_prefix(session_, nullptr, 1, nullptr, &error_),
      mote_session_rewind_to_prefix(session_, nullptr, 0, nullptr, &error_),
      mote_session_logits(session_, nullptr, &error_),
      mote_session_fork(session_, nullptr, &error_),
      mote_session_save(session_, nullptr, &error_),
      mote_session_restore(session_, nullptr, &error_),
      mote_session_beam_search(nullptr, &id, 1, nullptr, &beams, &error_),
      mote_session_beam_search(session_, nullptr, 1, nullptr, &beams, &error_),
      mote_session_beam_search(session_, &id, 1, nullptr, nullptr, &error_),
      mote_session_beam_search(session_, nullptr, 0, nullptr, &beams, &error_),
      mote_beams_get(nullptr, 0, &ids, &count, nullptr, &error_),
      mote_batch_add_fork(nullptr, session_, &id, 1, nullptr, &sequence, &error_),
      mote_prefix_cache_open(1, nullptr, &error_),
      mote_prefix_cache_clear(nullptr, &error_),
      mote_prefix_cache_get_info(nullptr, nullptr, &error_),
      mote_session_get_info(nullptr, nullptr, &error_),
      mote_session_check_golden(nullptr, &text, &error_),
  };
  for (size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], MOTE_ERROR_INVALID_ARGUMENT) << "call " << i;
  mote_prefix_cache_close(nullptr);
  mote_beams_close(nullptr);
  EXPECT_EQ(mote_beams_count(nullptr), 0u);
}

TEST_F(CApi, beams_come_best_first) {
  const int32_t id = 1;
  const GivenOptions options(
      R"({"num_beams": 4, "num_return_sequences": 3, "length_penalty": 1, "max_new_tokens": 5, "ignore_eos": true})");
  mote_beams* beams = nullptr;
  ASSERT_EQ(mote_session_beam_search(session_, &id, 1, options, &beams, &error_), MOTE_OK) << error_.message;
  ASSERT_EQ(mote_beams_count(beams), 3u);
  float last = 0.0f;
  for (size_t i = 0; i < 3; ++i) {
    const int32_t* ids = nullptr;
    size_t count = 0;
    float score = 0.0f;
    ASSERT_EQ(mote_beams_get(beams, i, &ids, &count, &score, &error_), MOTE_OK);
    EXPECT_EQ(count, 5u);
    EXPECT_LE(score, last);
    last = score;
  }
  EXPECT_EQ(mote_beams_get(beams, 3, nullptr, nullptr, nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  mote_beams_close(beams);
  EXPECT_EQ(mote_session_position(session_), 5);
  EXPECT_EQ(options.refusal("early_stopping", "3"), "early_stopping = \"3\": must be one of false, true, never");
  options.set(R"({"num_return_sequences": 5})");
  EXPECT_EQ(mote_session_beam_search(session_, &id, 1, options, &beams, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "num_return_sequences = 5: must be 1..4, the number of beams");
}

TEST_F(CApi, a_session_goes_back) {
  const int32_t ids[] = {1, 2, 3, 4};
  ASSERT_EQ(mote_session_prefill(session_, ids, 4, nullptr, &error_), MOTE_OK);
  ASSERT_EQ(mote_session_rewind(session_, 2, &error_), MOTE_OK) << error_.message;
  int32_t found[4] = {};
  size_t count = 0;
  ASSERT_EQ(mote_session_tokens(session_, found, 1, &count, &error_), MOTE_OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(found[0], 1);
  EXPECT_EQ(found[1], 0);
  EXPECT_EQ(mote_session_rewind(session_, 3, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_session_tokens(session_, nullptr, 4, &count, &error_), MOTE_ERROR_INVALID_ARGUMENT);
}

TEST_F(CApi, a_session_says_where_it_runs_and_moves_to_what_the_file_has) {
  const int32_t ids[] = {1, 2, 3};
  ASSERT_EQ(mote_session_prefill(session_, ids, 3, nullptr, &error_), MOTE_OK);
  char *backend = nullptr, *reason = nullptr;
  EXPECT_EQ(mote_session_move_to(session_, "npu", &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error_.message, "has no target npu: it has cpu"), nullptr) << error_.message;
  EXPECT_EQ(mote_session_move_to(session_, nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(mote_session_move_to(session_, "cpu", &error_), MOTE_OK) << error_.message;
  EXPECT_EQ(mote_session_position(session_), 3);
  EXPECT_EQ(mote_session_get_backend(session_, nullptr, &reason, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(mote_session_get_backend(session_, &backend, &reason, &error_), MOTE_OK) << error_.message;
  EXPECT_STREQ(backend, "cpu");
  EXPECT_STREQ(reason, "");
  mote_string_free(backend);
  mote_string_free(reason);
}

TEST_F(CApi, sessions_share_what_they_computed) {
  mote_prefix_cache* cache = nullptr;
  ASSERT_EQ(mote_prefix_cache_open(1 << 20, &cache, &error_), MOTE_OK);
  const GivenOptions options;
  options.set(cache);
  EXPECT_EQ(options.refusal("overflow", "2"), "overflow = \"2\": must be one of refuse, shift");
  EXPECT_EQ(options.refusal("overflow", "shift"), "");
  mote_session* session = nullptr;
  std::vector<int32_t> ids(40, 3);
  std::vector<float> first(19), second(19);
  int64_t kept = -1;
  for (std::vector<float>* logits : {&first, &second}) {
    ASSERT_EQ(mote_session_open(model_, options, &session, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_session_set_tokens(session, ids.data(), ids.size(), &kept, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_session_logits(session, logits->data(), &error_), MOTE_OK);
    mote_session_close(session);
  }
  EXPECT_EQ(kept, 40);
  EXPECT_EQ(first, second);
  auto info = sized<mote_prefix_cache_info>();
  ASSERT_EQ(mote_prefix_cache_get_info(cache, &info, &error_), MOTE_OK);
  EXPECT_EQ(info.snapshots, 1);
  EXPECT_EQ(info.reused_tokens, 40);
  EXPECT_GT(info.bytes, 0u);
  mote_prefix_cache_close(cache);
}

TEST_F(CApi, sessions_outlive_their_prefix_cache_and_parents) {
  mote_prefix_cache* cache = nullptr;
  ASSERT_EQ(mote_prefix_cache_open(1 << 20, &cache, &error_), MOTE_OK);
  mote_session* session = nullptr;
  const std::vector<int32_t> ids(40, 3);
  std::vector<float> first(19), second(19);
  {
    const GivenOptions options(R"({"overflow": "shift"})");
    options.set(cache);
    ASSERT_EQ(mote_session_open(model_, options, &session, &error_), MOTE_OK) << error_.message;
  }
  mote_prefix_cache_close(cache);
  ASSERT_EQ(mote_session_append(session, ids.data(), ids.size(), &error_), MOTE_OK);
  ASSERT_EQ(mote_session_logits(session, first.data(), &error_), MOTE_OK);
  mote_session* forked = nullptr;
  ASSERT_EQ(mote_session_fork(session, &forked, &error_), MOTE_OK) << error_.message;
  mote_session_close(session);
  ASSERT_EQ(mote_session_logits(forked, second.data(), &error_), MOTE_OK);
  EXPECT_EQ(first, second);
  auto state = sized<mote_session_info>();
  ASSERT_EQ(mote_session_get_info(forked, &state, &error_), MOTE_OK);
  EXPECT_EQ(state.position, 40);
  EXPECT_GT(state.held_state_bytes, 0u);
  ASSERT_EQ(mote_session_append(forked, ids.data(), ids.size(), &error_), MOTE_OK) << error_.message;
  ASSERT_EQ(mote_session_get_info(forked, &state, &error_), MOTE_OK);
  EXPECT_EQ(state.position + state.forgotten_tokens, 80);
  mote_session_close(forked);
}

TEST_F(CApi, a_generation_goes_on_from_what_the_session_has) {
  mote_generation* generation = nullptr;
  const GivenOptions options(R"({"max_new_tokens": 4})");
  EXPECT_EQ(mote_generation_begin(session_, nullptr, 0, options, &generation, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  const int32_t ids[] = {1, 2, 3};
  const auto run = [&](const int32_t* prompt, size_t count) {
    std::vector<int32_t> found;
    EXPECT_EQ(mote_generation_begin(session_, prompt, count, options, &generation, &error_), MOTE_OK) << error_.message;
    auto piece = sized<mote_piece>();
    do {
      EXPECT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK) << error_.message;
      found.push_back(piece.id);
    } while (piece.finished == 0);
    mote_generation_end(generation);
    return found;
  };
  const std::vector<int32_t> expected = run(ids, 3);
  ASSERT_EQ(mote_session_reset(session_, &error_), MOTE_OK);
  ASSERT_EQ(mote_session_append(session_, ids, 3, &error_), MOTE_OK);
  EXPECT_EQ(run(nullptr, 0), expected);
}

}  // namespace
}  // namespace mote
