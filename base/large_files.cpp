#include "base/large_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/memory.h"
#include "base/small_file.h"

namespace mote {

namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Of a file that says a number of bytes, "max", or is not there.
int64_t limit_in(const std::string& path) {
  const std::string word = first_word_of_file(path);
  if (word.empty() || word.size() > 18 || !std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; }))
    return kUnlimited;
  return std::stoll(word);
}

// Of a group and those above it. A container's root may stand for a group that /proc names by the host's path.
int64_t limit_along(const std::string& root, std::string group, const std::string& file) {
  int64_t limit = limit_in(root + file);
  while (group.size() > 1) {
    limit = std::min(limit, limit_in(root + group + file));
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  return limit;
}

#if defined(__APPLE__)
using Residence = char;
#else
using Residence = unsigned char;
#endif

bool is_in_memory(uintptr_t page, size_t page_bytes) {
  Residence in_memory = 1;
  return ::mincore(reinterpret_cast<void*>(page), page_bytes, &in_memory) != 0 || (in_memory & 1) != 0;
}

}  // namespace

int64_t group_memory_limit(const std::string& groups, const std::string& root) {
  int64_t limit = kUnlimited;
  for (size_t begin = 0; begin < groups.size();) {
    const size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string line = groups.substr(begin, end - begin);  // HIERARCHY:CONTROLLERS:GROUP
    begin = end + 1;
    const size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") limit = std::min(limit, limit_along(root, group, "/memory.max"));
    if (controllers.find(",memory,") != std::string::npos)
      limit = std::min(limit, limit_along(root + "/memory", group, "/memory.limit_in_bytes"));
  }
  return limit;
}

int64_t memory_limit_bytes() {
  const int64_t machine = physical_memory_bytes();
#if defined(__linux__)
  return std::min(machine, group_memory_limit(text_of_small_file("/proc/self/cgroup"), "/sys/fs/cgroup"));
#else
  return machine;
#endif
}

void read_ahead(std::span<const std::byte> part) {
  if (part.empty()) return;
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = begin / page_bytes * page_bytes, last = (begin + part.size() - 1) / page_bytes * page_bytes;
  if (is_in_memory(first, page_bytes) && is_in_memory(last, page_bytes)) return;
  (void)::madvise(reinterpret_cast<void*>(first), last + page_bytes - first, MADV_WILLNEED);
}

}  // namespace mote
