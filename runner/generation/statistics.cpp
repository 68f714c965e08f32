#include "runner/generation/statistics.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <memory>

namespace mote {
namespace {

std::atomic<uint64_t> peak_private{0};
std::atomic<uint64_t> peak_file_backed{0};

// Raises `peak` to `now` and gives it.
uint64_t update(std::atomic<uint64_t>& peak, uint64_t now) {
  uint64_t known = peak.load(std::memory_order_relaxed);
  while (known < now && !peak.compare_exchange_weak(known, now)) {}
  return std::max(known, now);
}

// Linux: VmHWM, RssAnon and RssFile of /proc/self/status, in kB. Leaves `memory` alone where there is no such file.
void read_proc_status(ProcessMemory& memory) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/status", "r"),
                                                   [](FILE* f) { return f == nullptr ? 0 : std::fclose(f); });
  if (file == nullptr) return;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), file.get()) != nullptr) {
    uint64_t kilobytes = 0;
    if (std::sscanf(line.data(), "VmHWM: %" SCNu64, &kilobytes) == 1) memory.peak_rss_bytes = kilobytes * 1024;
    if (std::sscanf(line.data(), "RssAnon: %" SCNu64, &kilobytes) == 1) memory.peak_private_bytes = kilobytes * 1024;
    if (std::sscanf(line.data(), "RssFile: %" SCNu64, &kilobytes) == 1)
      memory.peak_file_backed_bytes = kilobytes * 1024;
  }
}

void read_usage(ProcessMemory& memory) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
#if defined(__APPLE__)
  memory.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss);
#else
  memory.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
#endif
}

}  // namespace

ProcessMemory process_memory() {
  ProcessMemory memory;
  read_proc_status(memory);
  if (memory.peak_rss_bytes == 0) read_usage(memory);
  memory.peak_private_bytes = update(peak_private, memory.peak_private_bytes);
  memory.peak_file_backed_bytes = update(peak_file_backed, memory.peak_file_backed_bytes);
  return memory;
}

}  // namespace mote
