// What one rendering may use. Every loop over input and every allocation is charged, so that no template runs for long.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runner/templates/error.h"

namespace mote::jinja {

struct Limits {
  int max_call_depth = 64;  // macros, call blocks and recursive loops inside of each other
  int max_nesting = 512;    // statements and expressions being worked on
  int max_data_depth = 64;  // lists and dicts inside of each other
  uint64_t max_steps = 1'000'000;
  size_t max_output_bytes = size_t{16} << 20;
  size_t max_memory_bytes = size_t{44} << 20;  // of values, beside the output
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const { return limits_; }

  void step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.max_steps) {
      MOTE_JINJA_FAIL("the template takes more than %llu steps", static_cast<unsigned long long>(limits_.max_steps));
    }
  }
  // Work in proportion to a text: comparing bytes, counting characters, or changing them one by one.
  void scan(size_t bytes) { step(bytes / 128); }
  void count(size_t bytes) { step(bytes / 24); }
  void scan_slowly(size_t bytes) { step(bytes / 6); }

  void take_memory(size_t bytes) {
    if (bytes > limits_.max_memory_bytes - memory_) {
      MOTE_JINJA_FAIL("the template needs more than %zu bytes of memory", limits_.max_memory_bytes);
    }
    memory_ += bytes;
  }

 private:
  Limits limits_;
  uint64_t steps_ = 0;
  size_t memory_ = 0;
};

}  // namespace mote::jinja
