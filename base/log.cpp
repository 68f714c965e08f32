#include "base/log.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace mote {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"off", "error", "info", "debug"};  // in the order of LogLevel

LogLevel level_of_environment() {
  const char* text = std::getenv("MOTE_LOG");
  if (text == nullptr || *text == '\0') return LogLevel::kError;
  const auto level = parse_log_level(text);
  if (level.ok()) return *level;
  write_log_line("%s", level.status().message().c_str());
  return LogLevel::kError;
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
  static const LogLevel level = level_of_environment();
  return level;
}

void write_log_line(const char* pattern, ...) {
  std::array<char, 1024> text{};
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  std::fputs(("mote: " + std::string(text.data()) + "\n").c_str(), stderr);
}

}  // namespace mote
