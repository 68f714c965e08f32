// A system of which nothing is known.
#include "runner/program/cpu_count.h"
#include "runner/program/cpus.h"

namespace mote {

std::vector<int> usable_cpus() { return {}; }

Status bind_this_thread(std::span<const int>) {
  return {Code::kInvalidArgument, "cpus: this system cannot bind threads to CPUs"};
}

ScopedBinding::ScopedBinding(std::span<const int>) {}
ScopedBinding::~ScopedBinding() = default;

Status set_this_threads_priority(ThreadPriority priority) {
  if (priority == ThreadPriority::kNormal) return {};
  return {Code::kInvalidArgument, "priority: this system has none for threads"};
}

int physical_cores() { return 0; }
int quota_cores() { return 0; }

}  // namespace mote
