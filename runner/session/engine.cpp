#include "runner/session/engine.h"

#include <algorithm>

#include "runner/program/cpu_count.h"

namespace mote {

Result<Engine> make_engine(std::shared_ptr<const Bound> bound, const EngineOptions& options) {
  Engine engine;
  if (options.cpus.has_value()) { MOTE_ASSIGN(engine.cpus, parse_cpu_list(*options.cpus)); }
  int num_threads = options.num_threads;
  if (num_threads == 0) num_threads = engine.cpus.empty() ? available_cores() : static_cast<int>(engine.cpus.size());
  MOTE_ASSIGN(engine.threads, make_thread_pool({std::min(num_threads, kMaxThreads), engine.cpus, options.priority}));
  MOTE_ASSIGN(engine.executor, make_executor(std::move(bound), options, *engine.threads));
  return engine;
}

Result<std::shared_ptr<Executor>> make_executor(std::shared_ptr<const Bound> bound, const EngineOptions& options,
                                                ThreadPool& threads) {
  ExecutorOptions executor_options;
  executor_options.max_tokens = options.max_tokens;
  executor_options.context_length = options.context_length;
  executor_options.rewind_tokens = options.rewind_tokens;
  executor_options.rewind_bytes = options.rewind_bytes;
  MOTE_ASSIGN(auto executor, Executor::create(std::move(bound), executor_options, &threads));
  return std::shared_ptr<Executor>(std::move(executor));
}

}  // namespace mote
