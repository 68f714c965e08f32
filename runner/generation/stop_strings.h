// Ends a stream of text before the first stop string in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote {

// The text that leaves does not depend on how the input is split. The first stop string is the one that ends first;
// of those that end together, the longest.
class StopStrings {
 public:
  static constexpr size_t kMaxCount = 64;
  static constexpr size_t kMaxBytes = 1024;

  // Errors: kInvalidArgument if a string is empty, too long or not UTF-8, or there are too many.
  static Result<StopStrings> make(std::vector<std::string> strings);

  struct Output {
    std::string text;
    bool stopped = false;
  };
  // The text that no stop string can begin in any more.
  Output push(std::string_view text);
  // What was held back because a stop string might have begun in it.
  std::string finish();

 private:
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {}
  size_t held_bytes() const;

  std::vector<std::string> strings_;
  std::string pending_;
};

}  // namespace mote
