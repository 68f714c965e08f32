#include <gtest/gtest.h>

#include <cstdlib>

#include "base/log.h"

namespace mote {
namespace {

TEST(Log, knows_its_levels) {
  EXPECT_EQ(*parse_log_level("off"), LogLevel::kOff);
  EXPECT_EQ(*parse_log_level("error"), LogLevel::kError);
  EXPECT_EQ(*parse_log_level("info"), LogLevel::kInfo);
  EXPECT_EQ(*parse_log_level("debug"), LogLevel::kDebug);
}

TEST(Log, an_unknown_level_is_answered_with_the_known_ones) {
  for (const char* text : {"verbose", "INFO", "info ", ""}) {
    const auto level = parse_log_level(text);
    ASSERT_FALSE(level.ok()) << text;
    EXPECT_EQ(level.status().message(), std::string("MOTE_LOG = ") + text + ": must be off, error, info or debug");
  }
}

// The level is read once a process, so each value gets a process of its own.
void log_one_line_a_level(const char* environment) {
  setenv("MOTE_LOG", environment, 1);
  MOTE_LOG_LINE(kError, "an %s", "error");
  MOTE_LOG_LINE(kInfo, "an info");
  MOTE_LOG_LINE(kDebug, "a debug");
  std::exit(0);
}

TEST(Log, prints_the_lines_of_its_level_and_below) {
  const auto exited = testing::ExitedWithCode(0);
  EXPECT_EXIT(log_one_line_a_level("off"), exited, "^$");
  EXPECT_EXIT(log_one_line_a_level("error"), exited, "^mote: an error\n$");
  EXPECT_EXIT(log_one_line_a_level(""), exited, "^mote: an error\n$");
  EXPECT_EXIT(log_one_line_a_level("info"), exited, "^mote: an error\nmote: an info\n$");
  EXPECT_EXIT(log_one_line_a_level("debug"), exited, "^mote: an error\nmote: an info\nmote: a debug\n$");
}

TEST(Log, an_unknown_level_in_the_environment_is_reported_once) {
  EXPECT_EXIT(log_one_line_a_level("loud"), testing::ExitedWithCode(0),
              "^mote: MOTE_LOG = loud: must be off, error, info or debug\nmote: an error\n$");
}

}  // namespace
}  // namespace mote
