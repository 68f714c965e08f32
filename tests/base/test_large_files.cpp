#include "base/large_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/memory.h"

namespace mote {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

class GroupMemoryLimit : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << text << '\n';
  }

  std::string root_ = testing::TempDir() + "groups";
};

TEST_F(GroupMemoryLimit, is_the_least_of_a_group_and_those_above) {
  write("/memory.max", "max");
  write("/a/memory.max", "3000");
  write("/a/b/memory.max", "4000");
  EXPECT_EQ(group_memory_limit("0::/a/b\n", root_), 3000);
  EXPECT_EQ(group_memory_limit("0::/a\n", root_), 3000);
  EXPECT_EQ(group_memory_limit("0::/\n", root_), kNone);
  EXPECT_EQ(group_memory_limit("0::/a/b", root_ + "/a"), 3000) << "a container sees its own group as the root";
}

TEST_F(GroupMemoryLimit, is_told_by_version_1_too) {
  write("/memory/memory.limit_in_bytes", "9223372036854771712");
  write("/memory/a/memory.limit_in_bytes", "2000");
  EXPECT_EQ(group_memory_limit("5:cpu,cpuacct:/\n4:hugetlb,memory:/a\n0::/\n", root_), 2000);
  EXPECT_EQ(group_memory_limit("4:memory:/\n", root_), kNone);
}

TEST_F(GroupMemoryLimit, is_none_where_nothing_or_nonsense_is_told) {
  write("/memory.max", "-1");
  write("/a/memory.max", "12345678901234567890123");
  for (const char* groups : {"", "\n", "0", "0:", "0::", "0::/a", "0::a/", "::::", "0::/..", "memory"})
    EXPECT_EQ(group_memory_limit(groups, root_), kNone) << groups;
}

TEST(MemoryLimit, is_at_most_what_the_machine_has) {
  EXPECT_GT(memory_limit_bytes(), 1 << 20);
  EXPECT_LE(memory_limit_bytes(), physical_memory_bytes());
}

#if defined(__linux__)
bool is_in_memory(std::span<const std::byte> pages) {
  std::vector<unsigned char> found(pages.size() / static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  const int status = ::mincore(const_cast<std::byte*>(pages.data()), pages.size(), found.data());
  return status == 0 && std::ranges::all_of(found, [](unsigned char page) { return (page & 1) != 0; });
}

TEST(ReadAhead, brings_a_part_into_memory_and_no_more) {
  constexpr size_t kBytes = 16 << 20, kBegin = 8 << 20, kPart = 1 << 20;
  const std::string path = testing::TempDir() + "ahead";
  std::ofstream(path, std::ios::binary) << std::string(kBytes, 'm');
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(descriptor, 0);
  ::fsync(descriptor);
  const auto mapped = MappedPages::map(path, descriptor, 0, kBytes);
  ASSERT_TRUE(mapped.ok());
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  const std::span<const std::byte> part = mapped->pages().subspan(kBegin, kPart), rest = mapped->pages().first(kPart);
  if (is_in_memory(part) || is_in_memory(rest)) GTEST_SKIP() << "a file system that is memory";
  read_ahead(part.subspan(1, kPart - 2));
  for (int tries = 0; tries < 1000 && !is_in_memory(part); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_in_memory(part));
  EXPECT_FALSE(is_in_memory(rest));
  read_ahead(part);
  read_ahead({});
  std::remove(path.c_str());
}
#endif

}  // namespace
}  // namespace mote
