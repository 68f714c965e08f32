// Takes the states of a session from one target to another of the same file.
#pragma once

#include <cstdint>

#include "kernels/thread_pool.h"
#include "runner/program/delegates.h"
#include "runner/session/state/memory.h"

namespace mote {

// What holds the states of a session in one target.
struct StateHolder {
  const Bound& bound;
  StateMemory& memory;
  Delegates& delegates;
};

// Gives `to`, which is at position 0, what `from` holds of the first `positions`, of at least 1: keys and values as
// they are, in the elements that `to` has. False: some state cannot be read, or not as it is wanted, and `to` holds
// parts. Cost: reads and writes each cache once; nothing where both keep all states in the same memory.
bool carry_states(const StateHolder& from, const StateHolder& to, int64_t positions, ThreadPool& threads);

}  // namespace mote
