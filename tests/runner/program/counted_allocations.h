// Counts heap allocations of the whole test program.
#pragma once

#include <cstdint>

namespace mote::test {

// Calls of operator new so far, by any thread.
int64_t num_allocations();

}  // namespace mote::test
