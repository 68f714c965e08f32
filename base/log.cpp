#include "base/log.h"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

namespace mote {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"off", "error", "info", "debug"};  // in the order of LogLevel

void print(std::string_view line) { std::fputs(("mote: " + std::string(line) + "\n").c_str(), stderr); }

LogLevel level_of_environment() {
  const char* text = std::getenv("MOTE_LOG");
  if (text == nullptr || *text == '\0') return LogLevel::kError;
  const auto level = parse_log_level(text);
  if (level.ok()) return *level;
  print(level.status().message());
  return LogLevel::kError;
}

constexpr int32_t kLevelOfEnvironment = -1;

struct Lines {
  std::atomic<int32_t> level{kLevelOfEnvironment};
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;  // nullptr: standard error
};

// Never destroyed: lines may come from destructors at the end of the process.
Lines& lines() {
  static Lines& all = *new Lines;
  return all;
}

std::shared_ptr<const LogSink> current_sink() {
  const std::lock_guard lock(lines().mutex);
  return lines().sink;
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i]) return static_cast<LogLevel>(i);
  }
  return Status(Code::kInvalidArgument, format("MOTE_LOG = %.*s: must be off, error, info or debug",
                                               static_cast<int>(text.size()), text.data()));
}

LogLevel log_level() {
  const int32_t level = lines().level.load(std::memory_order_relaxed);
  if (level != kLevelOfEnvironment) return static_cast<LogLevel>(level);
  static const LogLevel of_environment = level_of_environment();
  return of_environment;
}

void set_log_sink(LogLevel level, LogSink sink) {
  std::shared_ptr<const LogSink> next;
  if (sink) next = std::make_shared<const LogSink>(std::move(sink));
  const std::lock_guard lock(lines().mutex);
  lines().level = next == nullptr ? kLevelOfEnvironment : static_cast<int32_t>(level);
  lines().sink.swap(next);
}

void write_log_line(LogLevel level, const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  const std::string line = format_list(pattern, arguments);
  va_end(arguments);
  if (const auto sink = current_sink())
    (*sink)(level, line);
  else if (is_logged(level))
    print(line);
}

}  // namespace mote
