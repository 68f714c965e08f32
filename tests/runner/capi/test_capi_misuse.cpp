// What must not be done with handles, which then say so.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "runner/capi/handles.h"
#include "tests/runner/capi/every_call.h"

namespace mote {
namespace {

TEST_F(CApiMisuse, handles_of_other_kinds_are_refused_everywhere) {
  const std::vector<Kind> all = kinds();
  for (const Kind& each : all) {
    for (const Kind& other : all) {
      if (other.handle == each.handle) continue;
      expect_refused(each, other.handle, (std::string("handle of a ") + other.name).c_str());
      each.close(other.handle);  // does nothing
    }
  }
  EXPECT_EQ(mote_session_position(reinterpret_cast<mote_session*>(model_)), -1);
  EXPECT_EQ(mote_beams_count(reinterpret_cast<mote_beams*>(model_)), 0u);
  EXPECT_EQ(mote_batch_num_sequences(reinterpret_cast<mote_batch*>(model_)), -1);
  EXPECT_EQ(mote_store_files_count(reinterpret_cast<mote_store_files*>(model_)), 0u);
  for (const Kind& each : all) {
    (void)each.calls[0](each.handle);
    EXPECT_EQ(std::strstr(error_.message, "handle"), nullptr) << each.name << ": " << error_.message;
  }
}

TEST_F(CApiMisuse, values_that_are_no_handles_are_refused_everywhere) {
  for (const Kind& each : kinds()) {
    std::vector<char> memory(256, 'x');
    for (void* wrong :
         {static_cast<void*>(memory.data()), static_cast<void*>(this), reinterpret_cast<void*>(uintptr_t{0xBEEF})}) {
      expect_refused(each, wrong, "must be a handle");
      each.close(wrong);
    }
    for (const auto& call : each.calls) EXPECT_EQ(call(nullptr), MOTE_ERROR_INVALID_ARGUMENT) << each.name;
  }
}

TEST_F(CApiMisuse, closed_handles_are_refused_everywhere_and_may_be_closed_again) {
  std::vector<Kind> all = kinds();
  std::ranges::reverse(all);
  for (const Kind& each : all) {
    each.close(each.handle);
    expect_refused(each, each.handle, "it was closed");
    each.close(each.handle);
    mote_session_cancel(static_cast<mote_session*>(each.handle));
    mote_session_forget_cancel(static_cast<mote_session*>(each.handle));
    mote_generation_cancel(static_cast<mote_generation*>(each.handle));
    mote_batch_cancel(static_cast<mote_batch*>(each.handle), 0);
    mote_download_set_metered(static_cast<mote_download*>(each.handle), 1);
  }
}

TEST_F(CApiMisuse, calls_during_a_call_are_refused_everywhere) {
  const auto busy = [&](auto* handle, const Kind& each) {
    const auto inside = capi::enter(handle);
    ASSERT_TRUE(inside.ok());
    expect_busy(each, "of this thread already");
    std::thread([&] { expect_busy(each, "of another thread"); }).join();
  };
  const std::vector<Kind> all = kinds();
  busy(session_, all[1]);
  busy(other_session_, all[3]);  // the session of the generation
  busy(generation_, all[3]);
  busy(constraint_, all[7]);
  busy(reply_, all[10]);
  {
    const auto inside = capi::enter(session_);
    EXPECT_EQ(mote_session_position(session_), 0);
    mote_session_cancel(session_);
  }
  EXPECT_EQ(mote_session_append(session_, &id_, 1, &error_), MOTE_ERROR_CANCELLED);
  EXPECT_EQ(mote_session_append(session_, &id_, 1, &error_), MOTE_OK);
}

TEST_F(CApiMisuse, a_cancel_that_came_too_late_can_be_taken_back) {
  EXPECT_EQ(mote_session_append(session_, &id_, 1, &error_), MOTE_OK);
  mote_session_cancel(session_);
  mote_session_forget_cancel(session_);
  EXPECT_EQ(mote_session_append(session_, &id_, 1, &error_), MOTE_OK) << error_.message;
  EXPECT_EQ(mote_session_position(session_), 2);
}

TEST_F(CApiMisuse, a_batch_in_a_step_takes_sequences_and_nothing_else) {
  const Kind batch = kinds()[4];
  const auto inside = capi::enter(batch_);
  std::thread([&] {
    EXPECT_EQ(batch.calls[0](batch_), MOTE_OK);
    EXPECT_EQ(batch.calls[1](batch_), MOTE_OK);
    EXPECT_EQ(mote_batch_num_sequences(batch_), 2);
    mote_batch_cancel(batch_, 0);
    for (size_t i = 2; i < batch.calls.size(); ++i) EXPECT_EQ(batch.calls[i](batch_), MOTE_ERROR_INVALID_STATE) << i;
  }).join();
}

TEST_F(CApiMisuse, a_session_in_a_batch_has_no_other_calls_until_its_last_piece) {
  const GivenOptions options(R"({"max_new_tokens": 2, "ignore_eos": true})");
  ASSERT_EQ(mote_batch_add(batch_, session_, &id_, 1, options, &sequence_, &error_), MOTE_OK) << error_.message;
  expect_busy(kinds()[1], "continues in a batch");
  ASSERT_EQ(mote_batch_step(batch_, &count_, &error_), MOTE_OK);
  EXPECT_EQ(mote_session_position(session_), 1);
  EXPECT_EQ(mote_session_reset(session_, &error_), MOTE_ERROR_INVALID_STATE);
  ASSERT_EQ(mote_batch_step(batch_, &count_, &error_), MOTE_OK);
  EXPECT_EQ(mote_session_position(session_), 2);
  // It may go on in the batch, and is free when the batch is closed.
  ASSERT_EQ(mote_batch_add(batch_, session_, &id_, 1, options, &sequence_, &error_), MOTE_OK) << error_.message;
  EXPECT_EQ(mote_session_reset(session_, &error_), MOTE_ERROR_INVALID_STATE);
  mote_batch_close(batch_);
  EXPECT_EQ(mote_session_reset(session_, &error_), MOTE_OK);
  // What a batch refuses stays the caller's.
  mote_batch* batch = nullptr;
  ASSERT_EQ(mote_batch_open(model_, 0, nullptr, &batch, &error_), MOTE_OK);
  EXPECT_EQ(mote_batch_add(batch, session_, nullptr, 0, options, &sequence_, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_session_append(session_, &id_, 1, &error_), MOTE_OK);
  mote_batch_close(batch);
}

TEST_F(CApiMisuse, a_generation_notices_that_its_session_was_changed) {
  ASSERT_EQ(mote_generation_next(generation_, &piece_, &error_), MOTE_OK) << error_.message;
  // What only reads may come in between.
  EXPECT_EQ(mote_session_logits(other_session_, logits_.data(), &error_), MOTE_OK);
  EXPECT_EQ(mote_session_get_info(other_session_, &session_info_, &error_), MOTE_OK);
  ASSERT_EQ(mote_session_fork(other_session_, &made_.session, &error_), MOTE_OK);
  mote_session_close(made_.session);
  ASSERT_EQ(mote_generation_next(generation_, &piece_, &error_), MOTE_OK) << error_.message;
  ASSERT_EQ(mote_session_rewind(other_session_, 1, &error_), MOTE_OK);
  EXPECT_EQ(mote_generation_next(generation_, &piece_, &error_), MOTE_ERROR_INVALID_STATE);
  EXPECT_NE(std::strstr(error_.message, "another call changed the session"), nullptr) << error_.message;
  EXPECT_EQ(mote_generation_statistics(generation_, &statistics_, &error_), MOTE_OK);
  // Two generations of one session: the one that was there first.
  mote_generation* second = nullptr;
  ASSERT_EQ(mote_generation_begin(other_session_, &id_, 1, nullptr, &second, &error_), MOTE_OK);
  EXPECT_EQ(mote_generation_next(second, &piece_, &error_), MOTE_OK) << error_.message;
  EXPECT_EQ(mote_generation_next(generation_, &piece_, &error_), MOTE_ERROR_INVALID_STATE);
  EXPECT_EQ(mote_generation_next(second, &piece_, &error_), MOTE_OK) << error_.message;
  mote_generation_end(second);
}

TEST_F(CApiMisuse, what_is_closed_during_a_call_lives_until_its_end) {
  {
    const auto inside = capi::enter(session_);
    mote_session_close(session_);
    EXPECT_EQ((*inside)->session->position(), 0);
    EXPECT_EQ(mote_session_append(session_, &id_, 1, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  }
  // A generation keeps its session, a session its model.
  mote_session_close(other_session_);
  mote_model_close(model_);
  EXPECT_EQ(mote_generation_next(generation_, &piece_, &error_), MOTE_OK) << error_.message;
}

// Threads open, use and close handles in shared places: every call works or says why not, and nothing is left.
TEST_F(CApiMisuse, threads_that_close_what_others_use_get_errors) {
  const GivenOptions options(R"({"threads": 1, "context_length": 32})");
  std::array<std::atomic<mote_session*>, 3> sessions{};
  std::array<std::atomic<mote_generation*>, 3> generations{};
  const auto work = [&](uint32_t seed) {
    std::mt19937 random(seed);
    auto error = sized<mote_error>();
    auto piece = sized<mote_piece>();
    for (int i = 0; i < 300; ++i) {
      std::atomic<mote_session*>& session = sessions[random() % 3];
      std::atomic<mote_generation*>& generation = generations[random() % 3];
      mote_session* opened = nullptr;
      mote_generation* begun = nullptr;
      int32_t code = MOTE_OK;
      EXPECT_GE(mote_session_position(session.load()), -1);
      switch (random() % 9) {
        case 0:
          code = mote_session_open(model_, options, &opened, &error);
          mote_session_close(session.exchange(opened));
          break;
        case 1:
          code = mote_generation_begin(session.load(), &id_, 1, nullptr, &begun, &error);
          mote_generation_end(generation.exchange(begun));
          break;
        case 2: mote_session_close(session.load()); break;
        case 3: mote_generation_end(generation.load()); break;
        case 4: mote_session_cancel(session.load()); break;
        case 5: code = mote_session_append(session.load(), &id_, 1, &error); break;
        case 6: code = mote_session_rewind(session.load(), 0, &error); break;
        default: code = mote_generation_next(generation.load(), &piece, &error);
      }
      const bool is_expected = code == MOTE_OK || code == MOTE_ERROR_INVALID_ARGUMENT ||
                               code == MOTE_ERROR_INVALID_STATE || code == MOTE_ERROR_CANCELLED ||
                               code == MOTE_ERROR_CONTEXT_FULL;
      EXPECT_TRUE(is_expected) << code << " " << error.message;
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  for (const auto& generation : generations) mote_generation_end(generation.load());
  for (const auto& session : sessions) mote_session_close(session.load());
}

}  // namespace
}  // namespace mote
