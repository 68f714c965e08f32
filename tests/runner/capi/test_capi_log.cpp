#include <utility>
#include <vector>

#include "base/log.h"
#include "tests/runner/capi/fixture.h"

namespace mote {
namespace {

struct Seen {
  std::vector<std::pair<mote_log_level, std::string>> lines;
  int released = 0;
};

void take(void* user_data, mote_log_level level, const char* text, size_t text_bytes) {
  static_cast<Seen*>(user_data)->lines.emplace_back(level, std::string(text, text_bytes));
}

void count(void* user_data) { ++static_cast<Seen*>(user_data)->released; }

TEST(CApiLog, lines_go_to_the_sink_until_another_takes_its_place) {
  auto error = sized<mote_error>();
  Seen first, second;
  ASSERT_EQ(mote_set_log_sink(MOTE_LOG_INFO, take, &first, count, &error), MOTE_OK) << error.message;
  MOTE_LOG_LINE(kInfo, "an info");
  MOTE_LOG_LINE(kDebug, "a debug");
  ASSERT_EQ(mote_set_log_sink(MOTE_LOG_DEBUG, take, &second, nullptr, &error), MOTE_OK);
  EXPECT_EQ(first.released, 1);
  MOTE_LOG_LINE(kDebug, "another");
  ASSERT_EQ(mote_set_log_sink(MOTE_LOG_OFF, nullptr, nullptr, nullptr, nullptr), MOTE_OK);
  MOTE_LOG_LINE(kDebug, "for nobody");
  EXPECT_EQ(first.lines, (decltype(first.lines){{MOTE_LOG_INFO, "an info"}}));
  EXPECT_EQ(second.lines, (decltype(second.lines){{MOTE_LOG_DEBUG, "another"}}));
}

TEST(CApiLog, a_level_that_is_none_is_refused_and_what_was_given_is_released) {
  auto error = sized<mote_error>();
  Seen seen;
  for (const int level : {-1, 4}) {
    EXPECT_EQ(mote_set_log_sink(static_cast<mote_log_level>(level), take, &seen, count, &error),
              MOTE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(error.message, "level = " + std::to_string(level) + ": must be one of MOTE_LOG_*, 0..3");
  }
  EXPECT_EQ(seen.released, 2);
}

TEST(CApiErrors, have_the_names_of_their_constants) {
  EXPECT_STREQ(mote_error_name(MOTE_OK), "OK");
  EXPECT_STREQ(mote_error_name(MOTE_ERROR_FILE_NOT_FOUND), "FILE_NOT_FOUND");
  EXPECT_STREQ(mote_error_name(MOTE_ERROR_INTERNAL), "INTERNAL");
  for (const int code : {-1, 1, 71, 1000, INT32_MIN, INT32_MAX})
    EXPECT_EQ(mote_error_name(static_cast<mote_error_code>(code)), nullptr);
}

}  // namespace
}  // namespace mote
