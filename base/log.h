// Lines on standard error for people who ask for them: MOTE_LOG=off, error (the default), info or debug.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace mote {

enum class LogLevel : uint8_t { kOff = 0, kError, kInfo, kDebug };

// Errors: kInvalidArgument naming the value and the levels.
Result<LogLevel> parse_log_level(std::string_view text);

// What MOTE_LOG says, read at the first call. An unknown value is reported once on standard error and counts as
// `error`. Thread safety: any thread.
LogLevel log_level();

inline bool is_logged(LogLevel level) { return level <= log_level(); }

// Writes "mote: " and one line, whole even when several threads write. `pattern` has no newline.
[[gnu::format(printf, 1, 2)]] void write_log_line(const char* pattern, ...);

}  // namespace mote

// MOTE_LOG_LINE(kInfo, "%s: ...", name): arguments are evaluated only if the level is on. Not for the inside of a step.
#define MOTE_LOG_LINE(level, ...)                                                        \
  do {                                                                                   \
    if (::mote::is_logged(::mote::LogLevel::level)) ::mote::write_log_line(__VA_ARGS__); \
  } while (false)
