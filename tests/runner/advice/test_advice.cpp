#include "runner/advice/advice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runner/advice/stand_in.h"
#include "runner/session/session.h"
#include "tests/runner/session/tiny_file.h"

namespace mote::test {
namespace {

Bytes tiny_bytes() { return tiny_program().build(); }

size_t end_of_program(const Bytes& bytes) {
  uint64_t program_bytes = 0;
  std::memcpy(&program_bytes, bytes.data() + 16, sizeof program_bytes);
  return 64 + static_cast<size_t>(program_bytes);
}

Result<Advice> advise_on(const Bytes& bytes, size_t count, const AdviceOptions& options = {{}, 4, 4}) {
  return advise(MemoryBytes{"tiny.mote", std::span(reinterpret_cast<const std::byte*>(bytes.data()), count), nullptr},
                options);
}

TEST(Advice, tells_the_same_sizes_from_the_beginning_as_from_the_file) {
  const Bytes bytes = tiny_bytes();
  const Result<Advice> whole = advise_on(bytes, bytes.size()), part = advise_on(bytes, end_of_program(bytes));
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_EQ(whole->file_bytes, bytes.size());
  EXPECT_EQ(part->file_bytes, bytes.size());
  EXPECT_EQ(part->state_bytes, whole->state_bytes);
  EXPECT_EQ(part->working_bytes, whole->working_bytes);
  EXPECT_GT(part->decode_tokens_per_second, 0);
  EXPECT_GT(part->prefill_tokens_per_second, 0);
  EXPECT_GE(part->num_threads, 1);
}

TEST(Advice, states_are_those_of_a_session_of_the_file) {
  const TinyFile file(tiny_program());
  SessionOptions options;
  options.context_length = 24;
  const Result<Advice> advice = advise(file.path(), {options, 4, 4});
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  auto model = Model::open(file.path());
  ASSERT_TRUE(model.ok());
  const auto session = Session::open(*model, options);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(advice->state_bytes, (*session)->state_bytes());
  EXPECT_EQ(advice->context_length, 24);
}

TEST(Advice, says_what_is_missing) {
  const Bytes bytes = tiny_bytes();
  const size_t needed = end_of_program(bytes);
  const Result<Advice> short_by_one = advise_on(bytes, needed - 1);
  EXPECT_EQ(short_by_one.status().code(), Code::kInvalidArgument);
  EXPECT_NE(short_by_one.status().message().find("ends at byte " + std::to_string(needed)), std::string::npos)
      << short_by_one.status().message();
  EXPECT_EQ(advise_on(bytes, 10).status().code(), Code::kInvalidProgram);
  EXPECT_EQ(advise("/nowhere/tiny.mote", {}).status().code(), Code::kFileNotFound);
}

TEST(Advice, names_lengths_that_do_not_fit) {
  const Bytes bytes = tiny_bytes();
  SessionOptions session;
  session.context_length = 16;
  for (const AdviceOptions& options : {AdviceOptions{session, 17, 4}, AdviceOptions{session, 0, 4},
                                       AdviceOptions{session, 4, 12}, AdviceOptions{session, 4, 0}}) {
    const Result<Advice> advice = advise_on(bytes, bytes.size(), options);
    EXPECT_EQ(advice.status().code(), Code::kInvalidArgument);
    EXPECT_NE(advice.status().message().find("must be 1.."), std::string::npos) << advice.status().message();
  }
}

TEST(Advice, refuses_sizes_that_a_header_makes_up) {
  Bytes bytes = tiny_bytes();
  const uint64_t huge = uint64_t{1} << 60;
  std::memcpy(bytes.data() + 24, &huge, sizeof huge);
  EXPECT_FALSE(advise_on(bytes, bytes.size()).ok());
}

// Weights fewer than a page, and such that repeat.
class StandIns : public testing::TestWithParam<int32_t> {};

TEST_P(StandIns, compute_numbers) {
  const TinyFile file(tiny_program({.width = GetParam()}));
  const Result<StandIn> stand_in = open_stand_in(file.path());
  ASSERT_TRUE(stand_in.ok()) << stand_in.status().message();
  const auto session = Session::open(stand_in->model, {});
  ASSERT_TRUE(session.ok());
  const std::vector<int32_t> ids = {1, 2, 3};
  const auto logits = (*session)->prefill(ids);
  ASSERT_TRUE(logits.ok()) << logits.status().message();
  for (const float logit : *logits) EXPECT_TRUE(std::isfinite(logit));
}
INSTANTIATE_TEST_SUITE_P(Widths, StandIns, testing::Values(1, 16));

}  // namespace
}  // namespace mote::test
