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
  ExecutorOptions executor_options;
  executor_options.max_tokens = options.max_tokens;
  executor_options.context_length = options.context_length;
  MOTE_ASSIGN(engine.executor, Executor::create(std::move(bound), executor_options, engine.threads.get()));
  return engine;
}

}  // namespace mote
