// Counts heap allocations of the whole test program, and makes them fail.
#pragma once

#include <cstdint>

namespace mote::test {

// Calls of operator new so far, by any thread.
int64_t num_allocations();

// While it lives, the index-th allocation from now on fails, counted from 1 and by any thread; with `and_all_after`, so
// do those behind it. One at a time. Allocations are calls of operator new, and where a test is linked with
// wrapped_allocations.cpp also those of malloc, posix_memalign, realloc and mmap.
class FailingAllocation {
 public:
  FailingAllocation(int64_t index, bool and_all_after);
  ~FailingAllocation() { stop(); }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  // From now on none fails. Returns whether one did.
  bool stop();
};

// Counts one; whether it is to fail.
bool refuses_allocation();

}  // namespace mote::test
