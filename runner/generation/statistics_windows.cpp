#include <windows.h>

#include <psapi.h>

#include <atomic>

#include "runner/generation/statistics.h"

namespace mote {
namespace {

std::atomic<uint64_t> peak_file_backed{0};

}  // namespace

ProcessMemory process_memory() {
  ProcessMemory memory;
  PROCESS_MEMORY_COUNTERS_EX counters{};
  counters.cb = sizeof counters;
  if (::GetProcessMemoryInfo(::GetCurrentProcess(), reinterpret_cast<PROCESS_MEMORY_COUNTERS*>(&counters),
                             sizeof counters) == 0)
    return memory;
  memory.peak_rss_bytes = counters.PeakWorkingSetSize;
  memory.peak_private_bytes = counters.PeakPagefileUsage;  // promised, of which not all need have been touched
  const uint64_t now =
      counters.WorkingSetSize > counters.PrivateUsage ? counters.WorkingSetSize - counters.PrivateUsage : 0;
  uint64_t known = peak_file_backed.load(std::memory_order_relaxed);
  while (known < now && !peak_file_backed.compare_exchange_weak(known, now)) {}
  memory.peak_file_backed_bytes = known < now ? now : known;
  return memory;
}

}  // namespace mote
