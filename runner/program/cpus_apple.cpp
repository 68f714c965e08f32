#include <pthread.h>
#include <pthread/qos.h>
#include <sys/sysctl.h>

#include "runner/program/cpu_count.h"
#include "runner/program/cpus.h"

namespace mote {

Status set_this_threads_priority(ThreadPriority priority) {
  if (priority == ThreadPriority::kNormal) return {};
  const qos_class_t quality = priority == ThreadPriority::kLow ? QOS_CLASS_UTILITY : QOS_CLASS_USER_INTERACTIVE;
  MOTE_REQUIRE(pthread_set_qos_class_self_np(quality, 0) == 0, Code::kInvalidArgument,
               "priority: the system refuses it");
  return {};
}

void name_this_thread(const char* name) { (void)pthread_setname_np(name); }

int physical_cores() {
  int cores = 0;
  size_t bytes = sizeof cores;
  if (sysctlbyname("hw.perflevel0.physicalcpu", &cores, &bytes, nullptr, 0) == 0 && cores > 0) return cores;
  bytes = sizeof cores;
  return sysctlbyname("hw.physicalcpu", &cores, &bytes, nullptr, 0) == 0 ? cores : 0;
}
int quota_cores() { return 0; }

}  // namespace mote
