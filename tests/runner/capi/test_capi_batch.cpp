#include <map>
#include <string>
#include <vector>

#include "tests/runner/capi/fixture.h"

namespace mote {
namespace {

class CApiBatch : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(mote_model_open(file_.path().c_str(), nullptr, &model_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_batch_open(model_, 0, nullptr, &batch_, &error_), MOTE_OK) << error_.message;
  }
  void TearDown() override {
    mote_batch_close(batch_);
    mote_model_close(model_);
  }

  int64_t add(const std::vector<int32_t>& ids, mote_session* session = nullptr) {
    int64_t sequence = -1;
    EXPECT_EQ(mote_batch_add(batch_, session, ids.data(), ids.size(), options_, &sequence, &error_), MOTE_OK)
        << error_.message;
    return sequence;
  }

  std::vector<int32_t> alone(const std::vector<int32_t>& prompt) {
    mote_session* session = nullptr;
    mote_generation* generation = nullptr;
    EXPECT_EQ(mote_session_open(model_, nullptr, &session, &error_), MOTE_OK);
    EXPECT_EQ(mote_generation_begin(session, prompt.data(), prompt.size(), options_, &generation, &error_), MOTE_OK);
    std::vector<int32_t> ids;
    auto piece = sized<mote_piece>();
    while (piece.finished == 0 && mote_generation_next(generation, &piece, &error_) == MOTE_OK) ids.push_back(piece.id);
    mote_generation_end(generation);
    mote_session_close(session);
    return ids;
  }

  test::TinyFile file_{test::tiny_program()};
  mote_error error_ = sized<mote_error>();
  const GivenOptions options_{R"({"ignore_eos": true, "max_new_tokens": 8})"};
  mote_model* model_ = nullptr;
  mote_batch* batch_ = nullptr;
};

TEST_F(CApiBatch, gives_pieces_of_all_sequences_and_their_statistics) {
  const std::vector<std::vector<int32_t>> prompts{{3, 1, 4, 1, 5}, {9}, {2, 6, 5}};
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(add(prompts[i]), static_cast<int64_t>(i));
  std::map<int64_t, std::vector<int32_t>> ids;
  while (mote_batch_num_sequences(batch_) > 0) {
    size_t count = 0;
    ASSERT_EQ(mote_batch_step(batch_, &count, &error_), MOTE_OK) << error_.message;
    for (size_t i = 0; i < count; ++i) {
      int64_t sequence = -1;
      auto piece = sized<mote_piece>();
      auto statistics = sized<mote_statistics>();
      ASSERT_EQ(mote_batch_piece(batch_, i, &sequence, &piece, &error_), MOTE_OK) << error_.message;
      EXPECT_EQ(piece.text[piece.text_bytes], '\0');
      ids[sequence].push_back(piece.id);
      const mote_error_code code = mote_batch_statistics(batch_, i, &statistics, &error_);
      EXPECT_EQ(code, piece.finished != 0 ? MOTE_OK : MOTE_ERROR_INVALID_ARGUMENT);
      if (piece.finished == 0) continue;
      EXPECT_EQ(piece.finish_reason, MOTE_FINISH_LENGTH);
      EXPECT_EQ(statistics.finish_reason, MOTE_FINISH_LENGTH);
      EXPECT_EQ(statistics.generated_tokens, 8);
      EXPECT_EQ(statistics.prompt_tokens, static_cast<int64_t>(prompts[static_cast<size_t>(sequence)].size()));
    }
  }
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(ids[static_cast<int64_t>(i)], alone(prompts[i]));
}

TEST_F(CApiBatch, a_session_may_be_closed_once_it_is_in_a_batch) {
  mote_session* session = nullptr;
  ASSERT_EQ(mote_session_open(model_, nullptr, &session, &error_), MOTE_OK);
  add({3, 1, 4}, session);
  mote_session_close(session);
  size_t count = 0;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(mote_batch_step(batch_, &count, &error_), MOTE_OK);
  EXPECT_EQ(mote_batch_num_sequences(batch_), 0);
}

TEST_F(CApiBatch, a_sequence_that_fails_says_which_and_why) {
  add({3, 1, 4});
  std::filesystem::resize_file(file_.path(), std::filesystem::file_size(file_.path()) + 1);
  size_t count = 0;
  ASSERT_EQ(mote_batch_step(batch_, &count, &error_), MOTE_OK);
  ASSERT_EQ(count, 1u);
  int64_t sequence = -1;
  auto piece = sized<mote_piece>();
  EXPECT_EQ(mote_batch_piece(batch_, 0, &sequence, &piece, &error_), MOTE_ERROR_FILE_CHANGED);
  EXPECT_EQ(sequence, 0);
  EXPECT_NE(std::string(error_.message), "");
}

TEST_F(CApiBatch, misuse_is_an_error) {
  size_t count = 0;
  int64_t sequence = 0;
  auto piece = sized<mote_piece>();
  auto statistics = sized<mote_statistics>();
  const int32_t id = 3;
  EXPECT_EQ(mote_batch_open(nullptr, 0, nullptr, nullptr, nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_batch_add(nullptr, nullptr, &id, 1, nullptr, &sequence, nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_batch_add(batch_, nullptr, nullptr, 1, nullptr, &sequence, nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_batch_add(batch_, nullptr, &id, 1, nullptr, nullptr, nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_batch_step(nullptr, &count, nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_batch_piece(nullptr, 0, &sequence, &piece, nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_batch_piece(batch_, 0, &sequence, &piece, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "index = 0: the last step gave 0 pieces");
  EXPECT_EQ(mote_batch_statistics(batch_, 1, &statistics, nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_batch_num_sequences(nullptr), -1);
  mote_batch_cancel(nullptr, 0);
  mote_batch_cancel(batch_, 5);
  mote_batch_close(nullptr);
  mote_batch* batch = nullptr;
  for (const int32_t max_sequences : {-1, 257}) {
    EXPECT_EQ(mote_batch_open(model_, max_sequences, nullptr, &batch, &error_), MOTE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(error_.message, "max_sequences = " + std::to_string(max_sequences) + ": must be 1..256");
  }
  EXPECT_NE(options_.refusal("kv_dtype", "9"), "");
  options_.set(R"({"context_length": 65})");
  EXPECT_EQ(mote_batch_open(model_, 0, options_, &batch, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(batch, nullptr);
}

}  // namespace
}  // namespace mote
