#include "runner/program/cpu_count.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace mote {
namespace {

#if defined(__linux__)
// Siblings of one core share the text of thread_siblings_list, so distinct texts are distinct cores.
int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string siblings;
    if (!std::getline(file, siblings)) return 0;
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

// The number of cores whose time the control group allows; 0: no limit.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0.0;
  double period = 0.0;
  if (!(file >> quota >> period) || quota <= 0.0 || period <= 0.0) return 0;
  return std::max(1, static_cast<int>(std::ceil(std::min(quota / period, 1024.0))));
}
#elif defined(__APPLE__)
int physical_cores() {
  int cores = 0;
  size_t bytes = sizeof cores;
  if (sysctlbyname("hw.perflevel0.physicalcpu", &cores, &bytes, nullptr, 0) == 0 && cores > 0) return cores;
  bytes = sizeof cores;
  return sysctlbyname("hw.physicalcpu", &cores, &bytes, nullptr, 0) == 0 ? cores : 0;
}
int quota_cores() { return 0; }
#else
int physical_cores() { return 0; }
int quota_cores() { return 0; }
#endif

}  // namespace

int available_cores() {
  int cores = physical_cores();
  if (cores <= 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  if (const int quota = quota_cores(); quota > 0) cores = std::min(cores, quota);
  return std::clamp(cores, 1, 256);
}

}  // namespace mote
