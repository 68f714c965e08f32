// Pages that become large ones when they are full, and those of files.
#include "base/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>

namespace mote {
namespace {

constexpr size_t kBytes = size_t{8} << 20;

// Whether madvise has large pages to give, at once (Linux 6.1).
bool system_merges() {
  std::string modes;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), modes);
  int major = 0, minor = 0;
  utsname system{};
  ::uname(&system);
  const bool is_known = std::sscanf(system.release, "%d.%d", &major, &minor) == 2;
  return is_known && (major > 6 || (major == 6 && minor >= 1)) && !modes.empty() &&
         modes.find("[never]") == std::string::npos;
}

// KiB of large pages of the mappings that lie in [begin, begin + bytes).
long large_kib(const std::byte* begin, size_t bytes) {
  std::ifstream maps("/proc/self/smaps");
  long kib = 0;
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, last = 0;
    long count = 0;
    const auto start = reinterpret_cast<uintptr_t>(begin);
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) is_inside = first < start + bytes && last > start;
    if (is_inside && std::sscanf(line.c_str(), "AnonHugePages: %ld kB", &count) == 1) kib += count;
  }
  return kib;
}

TEST(MergePages, KeepsWhatTheyHold) {
  std::byte* block = reserve_pages(kBytes);
  ASSERT_NE(block, nullptr);
  std::fill_n(block, kBytes, std::byte{7});
  merge_pages(block, kBytes);
  EXPECT_EQ(std::count(block, block + kBytes, std::byte{7}), static_cast<std::ptrdiff_t>(kBytes));
  const long kib = large_kib(block, kBytes);
  release_pages(block, kBytes);
  if (!system_merges()) GTEST_SKIP() << "this system merges no pages at once";
  EXPECT_GE(kib, 2048);
}

TEST(Memory, pages_repeat) {
  constexpr size_t kRing = 131072, kAll = 2 * kRing + 65536;
  const ReservedPages pages(reserve_addresses(kAll), ReleasePages{kAll});
  ASSERT_NE(pages, nullptr);
  ASSERT_TRUE(repeat_pages(pages.get(), kAll, kRing));
  pages[5] = std::byte{7};
  EXPECT_EQ(pages[kRing + 5], std::byte{7});
  EXPECT_EQ(pages[2 * kRing + 5], std::byte{7});
  EXPECT_EQ(pages[kRing + 6], std::byte{0});
}

// KiB of memory that this process has of the mapping.
long resident_kib(std::span<const std::byte> mapping) {
  std::ifstream maps("/proc/self/smaps");
  long kib = 0;
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2)
      is_it = first == reinterpret_cast<uintptr_t>(mapping.data());
    if (is_it && std::sscanf(line.c_str(), "Rss: %ld kB", &kib) == 1) return kib;
  }
  return -1;
}

TEST(MappedPages, evicted_ones_are_read_again) {
  const std::string path = testing::TempDir() + "evicted";
  std::ofstream(path, std::ios::binary) << std::string(kBytes, 'm');
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(descriptor, 0);
  const auto mapped = MappedPages::map(path, descriptor, 0, kBytes);
  ::close(descriptor);
  ASSERT_TRUE(mapped.ok());
  const auto count = [&] { return std::ranges::count(mapped->part(), std::byte{'m'}); };
  EXPECT_EQ(count(), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_EQ(resident_kib(mapped->pages()), static_cast<long>(kBytes >> 10));
  mapped->evict();
  EXPECT_EQ(resident_kib(mapped->pages()), 0);
  EXPECT_EQ(count(), static_cast<std::ptrdiff_t>(kBytes));
  MappedPages().evict();
  std::remove(path.c_str());
}

}  // namespace
}  // namespace mote
