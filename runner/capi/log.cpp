#include "base/log.h"

#include <memory>

#include "runner/capi/boundary.h"

using mote::Code;
using mote::Status;

mote_error_code mote_set_log_sink(mote_log_level level, mote_log_sink sink, void* user_data, mote_release release,
                                  mote_error* error) {
  return mote::capi::guarded(error, [&]() -> Status {
    const mote::capi::Borrowed borrowed(user_data, release);
    MOTE_REQUIRE(level >= MOTE_LOG_OFF && level <= MOTE_LOG_DEBUG, Code::kInvalidArgument,
                 "level = %d: must be one of MOTE_LOG_*, 0..3", level);
    mote::LogSink calling;
    if (sink != nullptr) {
      calling = [sink, borrowed](mote::LogLevel of_line, std::string_view line) {
        sink(borrowed.get(), static_cast<mote_log_level>(of_line), line.data(), line.size());
      };
    }
    mote::set_log_sink(static_cast<mote::LogLevel>(level), std::move(calling));
    return {};
  });
}
