#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "base/small_file.h"
#include "runner/program/cpu_count.h"
#include "runner/program/cpus.h"

namespace mote {
namespace {

// The nice values that Android gives to background and to display threads. A thread whose own value goes further in
// that direction keeps it.
int nice_value(ThreadPriority priority, int now) {
  return priority == ThreadPriority::kLow ? std::max(now, 10) : std::min(now, -8);
}

int64_t number_of(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The first word of a file of the CPU below /sys; empty: there is none.
std::string told_of(int cpu, const char* file) {
  return first_word_of_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file);
}

}  // namespace

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<CpuCluster> cpu_clusters() {
  std::vector<CpuCluster> clusters;
  for (const int cpu : usable_cpus()) {
    const CpuCluster of_cpu{{cpu},
                            number_of(told_of(cpu, "cpufreq/cpuinfo_max_freq")) / 1000,
                            told_of(cpu, "regs/identification/midr_el1"),
                            static_cast<int>(number_of(told_of(cpu, "cpu_capacity")))};
    const auto like = std::find_if(clusters.begin(), clusters.end(), [&](const CpuCluster& cluster) {
      return cluster.max_mhz == of_cpu.max_mhz && cluster.identity == of_cpu.identity &&
             cluster.capacity == of_cpu.capacity;
    });
    if (like == clusters.end())
      clusters.push_back(of_cpu);
    else
      like->cpus.push_back(cpu);
  }
  return clusters;
}

Status bind_this_thread(std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  MOTE_REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0, Code::kInvalidArgument,
               "cpus: the system refuses to bind a thread to %s: %s", text_of_list(cpus).c_str(), std::strerror(errno));
  return {};
}

Status set_this_threads_priority(ThreadPriority priority) {
  if (priority == ThreadPriority::kNormal) return {};
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  MOTE_REQUIRE(setpriority(PRIO_PROCESS, thread, nice_value(priority, getpriority(PRIO_PROCESS, thread))) == 0,
               Code::kInvalidArgument, "priority = %s: the system refuses: %s",
               priority == ThreadPriority::kHigh ? "high" : "low", std::strerror(errno));
  return {};
}

void name_this_thread(const char* name) { (void)pthread_setname_np(pthread_self(), name); }

ScopedBinding::ScopedBinding(std::span<const int> cpus) {
  static_assert(sizeof(cpu_set_t) <= sizeof before_ && alignof(cpu_set_t) <= 8);
  if (cpus.empty() || sched_getaffinity(0, sizeof before_, reinterpret_cast<cpu_set_t*>(before_)) != 0) return;
  is_bound_ = bind_this_thread(cpus).ok();
}

ScopedBinding::~ScopedBinding() {
  if (is_bound_) (void)sched_setaffinity(0, sizeof before_, reinterpret_cast<const cpu_set_t*>(before_));
}

// Siblings of one core share the text of thread_siblings_list, so distinct texts are distinct cores.
int physical_cores() {
  std::set<std::string> cores;
  for (const int cpu : fast_cpus(cpu_clusters())) {
    const std::string siblings = told_of(cpu, "topology/thread_siblings_list");
    if (siblings.empty()) return 0;
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

// The number of cores whose time the control group allows; 0: no limit.
int quota_cores() {
  const std::string text = text_of_small_file("/sys/fs/cgroup/cpu.max");
  double quota = 0.0;
  double period = 0.0;
  if (std::sscanf(text.c_str(), "%lf %lf", &quota, &period) != 2 || quota <= 0.0 || period <= 0.0) return 0;
  return std::max(1, static_cast<int>(std::ceil(std::min(quota / period, 1024.0))));
}

}  // namespace mote
