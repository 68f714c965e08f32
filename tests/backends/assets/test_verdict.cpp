// What is kept of a trial.
#include "backends/proof/verdict.h"

#include <gtest/gtest.h>

#include "backends/proof/deadline.h"
#include "tests/backends/mutations.h"

namespace mote::proof::test {
namespace {

const Verdict kWorks{
    .state = State::works, .own_ns = 1'500'000, .cpu_ns = 9'000'000, .note = "ane seems not to compute"};
const Verdict kFails{.state = State::fails, .num_begun = 1, .reason = "other\nnumbers"};

TEST(Verdict, isReadAsItWasWritten) {
  for (const Verdict& verdict : {kWorks, kFails, Verdict{.state = State::trying, .num_begun = 2}, Verdict()})
    EXPECT_EQ(parse_verdict(to_text(verdict)), verdict);
}

TEST(Verdict, damageIsHarmless) {
  mote::test::Random random(1);
  const std::string text = to_text(kWorks);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  for (int i = 0; i < 10'000; ++i) {
    const std::vector<std::byte> damaged = mote::test::change_bytes({bytes.begin(), bytes.end()}, random);
    const auto read = parse_verdict({reinterpret_cast<const char*>(damaged.data()), damaged.size()});
    EXPECT_TRUE(!read || read->state <= State::fails);
  }
}

TEST(Verdict, saysWhatWasFound) {
  EXPECT_EQ(kWorks.text_for("A device"), "A device, tried with this file: 1.5 ms a token; ane seems not to compute");
  EXPECT_EQ(kFails.text_for("A device"), "");
}

TEST(Verdict, ofAFailureOrOfTwoDeadProcessesRefuses) {
  EXPECT_TRUE(check_tried(State::works, 0, "", {}, "A device").ok());
  EXPECT_TRUE(check_tried(State::trying, 1, "", {}, "A device").ok());
  EXPECT_EQ(check_tried(State::trying, 2, "", {}, "A device").message(),
            "A device was tried with this file and failed: processes that tried it did not come to an end; it is tried "
            "again with another driver, or in another process");
  EXPECT_EQ(
      check_tried(State::fails, 0, "wrong", {"m.verdict", ""}, "A device").message(),
      "A device was tried with this file and failed: wrong; it is tried again with another driver, or once m.verdict "
      "is deleted");
}

TEST(Deadline, givesWhatTheWorkGives) {
  const auto found = within<int>(std::chrono::hours(1), [] { return Result<int>(7); });
  ASSERT_TRUE(found && found->ok());
  EXPECT_EQ(**found, 7);
  const auto failed = within<int>(std::chrono::hours(1), []() -> Result<int> { throw std::bad_alloc(); });
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->status().code(), Code::kOutOfMemory);
}

}  // namespace
}  // namespace mote::proof::test
