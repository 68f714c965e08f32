// What computes: threads and an executor that runs on them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runner/program/executor.h"
#include "runner/program/thread_pool.h"

namespace mote {

struct EngineOptions {
  int num_threads = 0;  // 0: the physical cores that the process may use, or one for each of `cpus`
  // The CPUs that the threads may run on, and the calling thread during a call, such as "0-3,6"; absent: any.
  std::optional<std::string> cpus{};
  ThreadPriority priority = ThreadPriority::kNormal;  // of the threads beside the calling one
  int64_t max_tokens = 256;                           // of a call
  int64_t context_length = 0;                         // this and what follows is for delegates that keep states
  int64_t rewind_tokens = 0;
  uint64_t rewind_bytes = 0;
};

// It belongs to one session, or to several that take turns. Thread safety: one thread at a time.
struct Engine {
  std::vector<int> cpus;  // empty: any
  std::shared_ptr<ThreadPool> threads;
  std::shared_ptr<Executor> executor;
};

// Starts the threads and makes the executor. Errors: kInvalidArgument naming the option; kOutOfMemory.
Result<Engine> make_engine(std::shared_ptr<const Bound> bound, const EngineOptions& options);
// The executor alone, for threads that there are already.
Result<std::shared_ptr<Executor>> make_executor(std::shared_ptr<const Bound> bound, const EngineOptions& options,
                                                ThreadPool& threads);

}  // namespace mote
