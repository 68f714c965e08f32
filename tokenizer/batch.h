// The same work for each item of a list, by several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace mote::tokenizer {

// Calls work(i) for each i below `count`, in any order; returns when all are done. What a call throws is thrown here,
// of several the one with the smallest i.
//   num_threads: 0: as many as the process may use. Never more than there are items; where the system refuses a thread,
//   fewer
void for_each_in_threads(size_t count, size_t num_threads, const std::function<void(size_t)>& work);

}  // namespace mote::tokenizer
