// The thread pool of a session.
#pragma once

#include <memory>

#include "base/status.h"
#include "kernels/thread_pool.h"

namespace mote {

inline constexpr int kMaxThreads = 256;

// A pool of num_threads - 1 workers and the calling thread. Workers spin briefly after a loop, then sleep.
// Thread safety: parallel_for from one thread at a time, not from within a body. Bodies must not throw.
// Errors: kInvalidArgument unless 1 <= num_threads <= kMaxThreads; kOutOfMemory if the system refuses a thread.
Result<std::unique_ptr<ThreadPool>> make_thread_pool(int num_threads);

}  // namespace mote
