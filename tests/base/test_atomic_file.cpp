// Files that appear whole or not at all.
#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace mote {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() : folder_(fs::path(testing::TempDir()) / ("atomic_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  std::string path() const { return (folder_ / "file").string(); }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  static Status write(AtomicFile& file, const std::string& text) { return file.write(std::as_bytes(std::span(text))); }

  // As a process leaves it that is killed while it writes.
  fs::path leave(std::chrono::seconds age) const {
    const fs::path left = folder_ / "file.tmp-1-0";
    std::ofstream(left) << "half";
    fs::last_write_time(left, fs::file_time_type::clock::now() - age);
    return left;
  }

  fs::path folder_;
};

TEST_F(AtomicFileTest, AppearsWhenCommitted) {
  Result<AtomicFile> file = AtomicFile::create(path());
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(write(*file, "text").ok());
  EXPECT_FALSE(fs::exists(path()));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(fs::file_size(path()), 4u);
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(AtomicFileTest, LeavesNothingWithoutCommit) {
  ASSERT_TRUE(AtomicFile::create(path()).ok());
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(AtomicFileTest, RemovesWhatAKilledProcessLeft) {
  const fs::path left = leave(std::chrono::hours(1));
  const Result<AtomicFile> file = AtomicFile::create(path());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(AtomicFileTest, KeepsWhatMayStillBeWritten) {
  const fs::path young = leave(std::chrono::seconds(0));
  Result<AtomicFile> first = AtomicFile::create(path());
  ASSERT_TRUE(first.ok());
  fs::last_write_time(young, fs::file_time_type::clock::now());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (entry.path() != young) fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const Result<AtomicFile> second = AtomicFile::create(path());
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(write(*first, "text").ok());
  EXPECT_TRUE(first->commit().ok());
}

}  // namespace
}  // namespace mote
