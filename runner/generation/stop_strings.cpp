#include "runner/generation/stop_strings.h"

#include <algorithm>

#include "base/utf8.h"

namespace mote {

Result<StopStrings> StopStrings::make(std::vector<std::string> strings) {
  MOTE_REQUIRE(strings.size() <= kMaxCount, Code::kInvalidArgument, "%zu stop strings: at most %zu are accepted",
               strings.size(), kMaxCount);
  for (size_t i = 0; i < strings.size(); ++i) {
    MOTE_REQUIRE(!strings[i].empty() && strings[i].size() <= kMaxBytes, Code::kInvalidArgument,
                 "stop_strings[%zu] has %zu bytes: must have 1..%zu", i, strings[i].size(), kMaxBytes);
    MOTE_REQUIRE(is_valid_utf8(strings[i]), Code::kInvalidArgument, "stop_strings[%zu] is not UTF-8", i);
  }
  return StopStrings(std::move(strings));
}

StopStrings::Output StopStrings::push(std::string_view text) {
  pending_ += text;
  size_t begin = std::string::npos;
  size_t end = std::string::npos;
  for (const std::string& string : strings_) {
    const size_t found = pending_.find(string);
    if (found == std::string::npos) continue;
    const size_t found_end = found + string.size();
    if (found_end > end || (found_end == end && found > begin)) continue;
    begin = found;
    end = found_end;
  }
  Output output;
  output.stopped = begin != std::string::npos;
  output.text = pending_.substr(0, output.stopped ? begin : pending_.size() - held_bytes());
  pending_.erase(0, output.stopped ? pending_.size() : output.text.size());
  return output;
}

std::string StopStrings::finish() { return std::move(pending_); }

// The longest end of the text that a stop string starts with.
size_t StopStrings::held_bytes() const {
  size_t held = 0;
  for (const std::string& string : strings_) {
    for (size_t length = std::min(string.size() - 1, pending_.size()); length > held; --length) {
      if (pending_.ends_with(std::string_view(string).substr(0, length))) held = length;
    }
  }
  return held;
}

}  // namespace mote
