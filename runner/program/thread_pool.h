// The thread pool of a session.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/thread_pool.h"
#include "runner/program/cpus.h"

namespace mote {

inline constexpr int kMaxThreads = 256;

struct ThreadPoolOptions {
  int num_threads = 1;
  std::vector<int> cpus{};                            // what the workers may run on; empty: as the calling thread
  ThreadPriority priority = ThreadPriority::kNormal;  // of the workers
  int num_cpus = 0;                                   // how many threads can run at once; 0: as many as there are CPUs
};

// A pool of num_threads - 1 workers and the calling thread. Each thread starts on a contiguous share of a loop, then
// takes from the shares of others. A loop never waits for a worker that has not begun on it, and workers for which
// there is no CPU are never woken. The others spin for as long as that has lately paid off, then sleep. Thread safety:
// parallel_for from one thread at a time, not from within a body. Bodies must not throw. Errors: kInvalidArgument
// unless 1 <= num_threads <= kMaxThreads, or if the system refuses CPUs or priority; kOutOfMemory if it refuses a
// thread.
Result<std::unique_ptr<ThreadPool>> make_thread_pool(const ThreadPoolOptions& options);
inline Result<std::unique_ptr<ThreadPool>> make_thread_pool(int num_threads) {
  return make_thread_pool(ThreadPoolOptions{.num_threads = num_threads});
}

}  // namespace mote
