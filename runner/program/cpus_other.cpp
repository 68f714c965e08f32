// A system of which nothing is known.
#include "runner/program/cpu_count.h"
#include "runner/program/cpus.h"

namespace mote {

Status set_this_threads_priority(ThreadPriority priority) {
  if (priority == ThreadPriority::kNormal) return {};
  return {Code::kInvalidArgument, "priority: this system has none for threads"};
}

void name_this_thread(const char*) {}

int physical_cores() { return 0; }
int quota_cores() { return 0; }

}  // namespace mote
