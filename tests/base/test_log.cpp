#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

using Lines = std::vector<std::pair<LogLevel, std::string>>;

LogSink appending_to(Lines& lines) {
  return [&lines](LogLevel level, std::string_view line) { lines.emplace_back(level, line); };
}

TEST(Log, a_sink_gets_the_lines_of_its_level_whole_and_standard_error_none) {
  Lines lines;
  const std::string word(5000, 'x');
  testing::internal::CaptureStderr();
  set_log_sink(LogLevel::kInfo, appending_to(lines));
  MOTE_LOG_LINE(kError, "an %s", word.c_str());
  MOTE_LOG_LINE(kInfo, "100%%");
  MOTE_LOG_LINE(kDebug, "a debug");
  set_log_sink(LogLevel::kOff, appending_to(lines));
  MOTE_LOG_LINE(kError, "nobody reads this");
  set_log_sink(LogLevel::kDebug, {});
  MOTE_LOG_LINE(kInfo, "below MOTE_LOG");
  MOTE_LOG_LINE(kError, "printed");
  EXPECT_EQ(lines, (Lines{{LogLevel::kError, "an " + word}, {LogLevel::kInfo, "100%"}}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "mote: printed\n");
}

TEST(Log, a_sink_may_replace_itself_and_is_destroyed_when_it_has_returned) {
  Lines lines;
  auto state = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = state;
  set_log_sink(LogLevel::kInfo, [&lines, state = std::move(state)](LogLevel, std::string_view line) {
    set_log_sink(LogLevel::kInfo, appending_to(lines));
    MOTE_LOG_LINE(kInfo, "of the next sink");
    lines.emplace_back(LogLevel::kOff, std::string(line) + std::to_string(++*state));
  });
  MOTE_LOG_LINE(kInfo, "line ");
  EXPECT_TRUE(watched.expired());
  set_log_sink(LogLevel::kInfo, {});
  EXPECT_EQ(lines, (Lines{{LogLevel::kInfo, "of the next sink"}, {LogLevel::kOff, "line 1"}}));
}

TEST(Log, no_line_is_lost_while_sinks_are_replaced) {
  constexpr int kThreads = 3, kLines = 2000;
  std::atomic<int> seen = 0, finished = 0;
  const auto replace = [&seen] {
    set_log_sink(LogLevel::kInfo, [&seen, owned = std::make_shared<const int>(1)](auto...) { seen += *owned; });
  };
  replace();
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&finished] {
      for (int line = 0; line < kLines; ++line) MOTE_LOG_LINE(kInfo, "line %d", line);
      ++finished;
    });
  }
  while (finished < kThreads) replace();
  threads.clear();
  set_log_sink(LogLevel::kInfo, {});
  EXPECT_EQ(seen, kThreads * kLines);
}

}  // namespace
}  // namespace mote
