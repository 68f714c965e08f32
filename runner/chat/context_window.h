// What of a conversation goes into a context that is too small for it.
#pragma once

#include <cstdint>
#include <vector>

namespace mote {

// Leaves out the oldest tokens behind the first `keep`, as sessions do that shift.
class ContextWindow {
 public:
  // What the session itself has forgotten while it generated.
  void forgot(int64_t count) { forgotten_ += count; }
  int64_t forgotten() const { return forgotten_; }

  // The tokens of `ids` that fit: all of them, or those that fitted last time and what is new, or, where that is too
  // much, the first `keep` and half of what the context has room for. keep: less than context_length
  std::vector<int32_t> fit(const std::vector<int32_t>& ids, int64_t context_length, int64_t keep);

 private:
  int64_t forgotten_ = 0;  // tokens behind the first `keep`
};

}  // namespace mote
