// CPUs that threads may run on, and their priority.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote {

enum class ThreadPriority : uint8_t { kNormal = 0, kLow, kHigh };

// The CPUs that the calling thread may run on, ascending; empty where the system does not tell.
std::vector<int> usable_cpus();

// The number of CPUs that the calling thread may run on; where the system does not tell, the number that the machine
// has. At least 1.
int num_usable_cpus();

// Reads "0-3,6": numbers and ranges, each CPU usable, in ascending order without repetition. Errors: kInvalidArgument
// naming what was read and the CPUs that can be used, or saying that the system cannot bind threads.
Result<std::vector<int>> parse_cpu_list(std::string_view text);

// A list of CPUs as text, such as "0-1,4".
std::string text_of_list(std::span<const int> cpus);

// CPUs that are alike, as far as Linux and Android tell: cores of one kind in a phone, else all of them.
struct CpuCluster {
  std::vector<int> cpus;
  int64_t max_mhz = 0;     // 0: not told
  std::string identity{};  // the register MIDR_EL1 of Arm, such as 0x00000000411fd461; empty elsewhere
  int capacity = 0;        // work a second, of the fastest one 1024; 0: not told
};
// Of the CPUs that the calling thread may run on, by their first CPU; empty where the system does not tell.
std::vector<CpuCluster> cpu_clusters();
// All but the slowest cluster where that does less than half of the fastest one's work: a phone's small cores, which
// would add less to a call than they cost.
std::vector<int> fast_cpus(std::span<const CpuCluster> clusters);

// From now on the calling thread runs on these CPUs only. Errors: kInvalidArgument if the system refuses.
Status bind_this_thread(std::span<const int> cpus);

// Gives the calling thread this priority. Errors: kInvalidArgument if the system refuses it, as it refuses most users a
// higher priority.
Status set_this_threads_priority(ThreadPriority priority);

// What profilers and debuggers call the calling thread; at most 15 characters.
void name_this_thread(const char* name);

// Binds the calling thread while it lives. Empty `cpus`: does nothing. Cost: three system calls.
class ScopedBinding {
 public:
  explicit ScopedBinding(std::span<const int> cpus);
  ~ScopedBinding();
  ScopedBinding(const ScopedBinding&) = delete;
  ScopedBinding& operator=(const ScopedBinding&) = delete;

 private:
  alignas(8) unsigned char before_[128];  // the system's set of CPUs
  bool is_bound_ = false;
};

}  // namespace mote
