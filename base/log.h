// Lines for people who ask for them: MOTE_LOG=off, error (the default), info or debug prints them on standard error; a
// program that embeds Mote may take them instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace mote {

enum class LogLevel : int32_t { kOff = 0, kError, kInfo, kDebug };

// Errors: kInvalidArgument naming the value and the levels.
Result<LogLevel> parse_log_level(std::string_view text);

// That of the sink, else what MOTE_LOG says, read when it is first needed. An unknown value is reported once on
// standard error and counts as `error`. Thread safety: any thread.
LogLevel log_level();

// Takes a line without its newline. Called from any thread, by several at the same time, and under no lock.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

// Lines up to `level` go to `sink` from now on; an empty one: to standard error again, by MOTE_LOG. The sink before it
// is destroyed when the calls on it that run have returned. Thread safety: any thread, also within a sink.
void set_log_sink(LogLevel level, LogSink sink);

inline bool is_logged(LogLevel level) { return level <= log_level(); }

// Gives one line to the sink, or writes "mote: " and the line, whole even when several threads write. `pattern` has no
// newline.
[[MOTE_PRINTF(2, 3)]] void write_log_line(LogLevel level, const char* pattern, ...);

}  // namespace mote

// MOTE_LOG_LINE(kInfo, "%s: ...", name): arguments are evaluated only if the level is on. Not for the inside of a step,
// nor where a lock is held.
#define MOTE_LOG_LINE(level, ...)                                                                                 \
  do {                                                                                                            \
    if (::mote::is_logged(::mote::LogLevel::level)) ::mote::write_log_line(::mote::LogLevel::level, __VA_ARGS__); \
  } while (false)
