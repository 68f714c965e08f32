#include "runner/program/cpus.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread/qos.h>
#endif

namespace mote {
namespace {

// A list of CPUs as text, such as "0-1,4".
std::string text_of_list(std::span<const int> cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (last > i) text += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

// Reads a number from the front of `text`.
bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Reads "3" or "0-3" from the front of `text`.
bool take_range(std::string_view& text, int& first, int& last) {
  if (!take_number(text, first)) return false;
  last = first;
  if (text.empty() || text.front() != '-') return true;
  text.remove_prefix(1);
  return take_number(text, last) && last >= first;
}

Status malformed(std::string_view text) {
  return {Code::kInvalidArgument,
          format("cpus = \"%.*s\": must be numbers and ranges separated by commas, such as 0-3,6",
                 static_cast<int>(std::min<size_t>(text.size(), 64)), text.data())};
}

#if defined(__linux__)
// The nice values that Android gives to background and to display threads. A thread whose own value goes further in
// that direction keeps it.
int nice_value(ThreadPriority priority, int now) {
  return priority == ThreadPriority::kLow ? std::max(now, 10) : std::min(now, -8);
}
#endif

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  const std::vector<int> usable = usable_cpus();
  MOTE_REQUIRE(!usable.empty(), Code::kInvalidArgument, "cpus = \"%.*s\": this system cannot bind threads to CPUs",
               static_cast<int>(std::min<size_t>(text.size(), 64)), text.data());
  std::vector<int> cpus;
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    int first = 0;
    int last = 0;
    if (!take_range(rest, first, last)) return malformed(text);
    for (int cpu = first; cpu <= last; ++cpu) {
      MOTE_REQUIRE(std::binary_search(usable.begin(), usable.end(), cpu), Code::kInvalidArgument,
                   "cpus: CPU %d does not exist or is closed to this process, which may use %s", cpu,
                   text_of_list(usable).c_str());
      cpus.push_back(cpu);
    }
    if (rest.empty()) break;
    if (rest.front() != ',') return malformed(text);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

int num_usable_cpus() {
  const size_t usable = usable_cpus().size();
  return std::max(1, usable > 0 ? static_cast<int>(usable) : static_cast<int>(std::thread::hardware_concurrency()));
}

#if defined(__linux__)

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

ScopedBinding::ScopedBinding(std::span<const int> cpus) {
  static_assert(sizeof(cpu_set_t) <= sizeof before_ && alignof(cpu_set_t) <= 8);
  if (cpus.empty() || sched_getaffinity(0, sizeof before_, reinterpret_cast<cpu_set_t*>(before_)) != 0) return;
  is_bound_ = bind_this_thread(cpus).ok();
}

ScopedBinding::~ScopedBinding() {
  if (is_bound_) (void)sched_setaffinity(0, sizeof before_, reinterpret_cast<const cpu_set_t*>(before_));
}

#else

std::vector<int> usable_cpus() { return {}; }

Status bind_this_thread(std::span<const int>) {
  return {Code::kInvalidArgument, "cpus: this system cannot bind threads to CPUs"};
}

ScopedBinding::ScopedBinding(std::span<const int>) {}
ScopedBinding::~ScopedBinding() = default;

Status set_this_threads_priority(ThreadPriority priority) {
  if (priority == ThreadPriority::kNormal) return {};
#if defined(__APPLE__)
  const qos_class_t quality = priority == ThreadPriority::kLow ? QOS_CLASS_UTILITY : QOS_CLASS_USER_INTERACTIVE;
  MOTE_REQUIRE(pthread_set_qos_class_self_np(quality, 0) == 0, Code::kInvalidArgument,
               "priority: the system refuses it");
  return {};
#else
  return {Code::kInvalidArgument, "priority: this system has none for threads"};
#endif
}

#endif

}  // namespace mote
