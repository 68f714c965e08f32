// Windows counts CPUs in groups of up to 64; a thread of Mote keeps to the group that it was started in.
#include <bit>
#include <cstring>
#include <set>
#include <string>

#include "base/windows.h"
#include "runner/program/cpu_count.h"
#include "runner/program/cpus.h"

namespace mote {
namespace {

constexpr int kMaxCpus = 64;  // of a group

GROUP_AFFINITY affinity_of_this_thread() {
  GROUP_AFFINITY affinity{};
  (void)::GetThreadGroupAffinity(::GetCurrentThread(), &affinity);
  return affinity;
}

bool set_affinity(KAFFINITY mask) {
  GROUP_AFFINITY affinity{};
  affinity.Group = affinity_of_this_thread().Group;
  affinity.Mask = mask;
  return ::SetThreadGroupAffinity(::GetCurrentThread(), &affinity, nullptr) != 0;
}

}  // namespace

std::vector<int> usable_cpus() {
  const KAFFINITY mask = affinity_of_this_thread().Mask;
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if ((mask >> cpu & 1) != 0) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<CpuCluster> cpu_clusters() { return {{usable_cpus()}}; }

Status bind_this_thread(std::span<const int> cpus) {
  KAFFINITY mask = 0;
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < kMaxCpus) mask |= KAFFINITY{1} << cpu;
  }
  MOTE_REQUIRE(set_affinity(mask), Code::kInvalidArgument, "cpus: the system refuses to bind a thread to %s: %s",
               text_of_list(cpus).c_str(), windows::last_message().c_str());
  return {};
}

// Asked for by name: Windows before 10 version 1607 has it not, nor have older headers of MinGW.
void name_this_thread(const char* name) {
  using Describe = HRESULT(WINAPI*)(HANDLE, PCWSTR);
  static const auto describe = reinterpret_cast<Describe>(
      reinterpret_cast<void*>(::GetProcAddress(::GetModuleHandleW(L"kernel32.dll"), "SetThreadDescription")));
  if (describe == nullptr) return;
  (void)describe(::GetCurrentThread(), std::wstring(name, name + std::strlen(name)).c_str());
}

Status set_this_threads_priority(ThreadPriority priority) {
  if (priority == ThreadPriority::kNormal) return {};
  const bool is_high = priority == ThreadPriority::kHigh;
  const int value = is_high ? THREAD_PRIORITY_HIGHEST : THREAD_PRIORITY_LOWEST;
  MOTE_REQUIRE(::SetThreadPriority(::GetCurrentThread(), value) != 0, Code::kInvalidArgument,
               "priority = %s: the system refuses: %s", is_high ? "high" : "low", windows::last_message().c_str());
  return {};
}

ScopedBinding::ScopedBinding(std::span<const int> cpus) {
  if (cpus.empty()) return;
  static_assert(sizeof(KAFFINITY) <= sizeof before_);
  *reinterpret_cast<KAFFINITY*>(before_) = affinity_of_this_thread().Mask;
  is_bound_ = bind_this_thread(cpus).ok();
}

ScopedBinding::~ScopedBinding() {
  if (is_bound_) (void)set_affinity(*reinterpret_cast<const KAFFINITY*>(before_));
}

int physical_cores() {
  const GROUP_AFFINITY allowed = affinity_of_this_thread();
  int cores = 0;
  windows::for_each_record(RelationProcessorCore, [&](const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX& record) {
    const GROUP_AFFINITY& core = record.Processor.GroupMask[0];
    if (core.Group == allowed.Group && (core.Mask & allowed.Mask) != 0) ++cores;
  });
  return cores;
}

// The time that a job object allows, as a container of Windows has one.
int quota_cores() {
  constexpr DWORD kHardCap = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate{};
  if (::QueryInformationJobObject(nullptr, JobObjectCpuRateControlInformation, &rate, sizeof rate, nullptr) == 0)
    return 0;
  if ((rate.ControlFlags & kHardCap) != kHardCap) return 0;
  const DWORD cpus = ::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
  return static_cast<int>((uint64_t{rate.CpuRate} * cpus + 9999) / 10000);  // of 100 % of all, in hundredths
}

}  // namespace mote
