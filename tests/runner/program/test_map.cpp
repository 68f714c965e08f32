#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runner/program/mapped.h"
#include "tests/runner/program/test_ops.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

class Map : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("mote_map_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const test::Bytes& bytes, const std::string& name = "test.mote") {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }

  fs::path folder_;
};

Status status_of(const test::Bytes& bytes) { return map_bytes("test.mote", bytes).status(); }

void expect(const Status& status, Code code, const std::string& message) {
  EXPECT_EQ(status.code(), code);
  EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
}

TEST_F(Map, gives_the_bytes_of_a_file) {
  const test::Bytes file = test::sum_model().build();
  const auto mapped = map(write(file));
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  EXPECT_TRUE(std::equal(file.begin(), file.end(), mapped->file_bytes().begin(), mapped->file_bytes().end()));
  EXPECT_TRUE(std::equal(mapped->program_bytes().begin(), mapped->program_bytes().end(), file.begin() + 64));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->program_bytes().data()) % 64, 0u);
  EXPECT_TRUE(mapped->check_unchanged().ok());
}

TEST_F(Map, notices_that_the_file_changed) {
  const test::Bytes file = test::sum_model().build();
  const std::string path = write(file);
  const auto appended = map(path);
  std::ofstream(path, std::ios::binary | std::ios::app) << "x";
  expect(appended->check_unchanged(), Code::kFileChanged, path + ": the file was changed or replaced");

  const auto replaced = map(write(file, "other.mote"));
  fs::rename(write(file, "new.mote"), folder_ / "other.mote");
  expect(replaced->check_unchanged(), Code::kFileChanged, "changed or replaced");

  const auto removed = map(write(file, "gone.mote"));
  fs::remove(folder_ / "gone.mote");
  expect(removed->check_unchanged(), Code::kFileChanged, "changed or replaced");
}

TEST_F(Map, a_file_that_was_read_may_change_or_vanish) {
  const test::Bytes file = test::sum_model().build();
  const std::string path = write(file);
  const auto loaded = map(path, LoadMode::kRead);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded->file_bytes().data()) % 64, 0u);
  write(test::Bytes(file.size()));
  fs::remove(path);
  EXPECT_TRUE(std::equal(file.begin(), file.end(), loaded->file_bytes().begin(), loaded->file_bytes().end()));
  EXPECT_TRUE(loaded->check_unchanged().ok());
  expect(map(path, LoadMode::kRead).status(), Code::kFileNotFound, "cannot be opened");
  expect(map(write(test::Bytes(63)), LoadMode::kRead).status(), Code::kInvalidProgram, "the file has 63 bytes");
  expect(map(write(test::Bytes(100)), LoadMode::kRead).status(), Code::kInvalidProgram, "not a .mote file");
}

TEST_F(Map, keeps_the_program_that_it_checked_when_the_file_is_written_to) {
  const std::string path = write(test::sum_model().build());
  const auto mapped = map(path);
  const std::vector<std::byte> before(mapped->program_bytes().begin(), mapped->program_bytes().end());
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(64) << std::string(before.size(), '\xff');
  EXPECT_TRUE(std::equal(before.begin(), before.end(), mapped->program_bytes().begin()));
}

TEST_F(Map, reports_what_cannot_be_opened) {
  expect(map((folder_ / "missing.mote").string()).status(), Code::kFileNotFound, "missing.mote: cannot be opened");
  expect(map(folder_.string()).status(), Code::kFileUnreadable, "must be a regular file");
  const std::string fifo = (folder_ / "fifo.mote").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect(map(fifo).status(), Code::kFileUnreadable, "must be a regular file");
}

TEST_F(Map, refuses_an_empty_or_short_file) {
  expect(map(write({})).status(), Code::kInvalidProgram, "the file has 0 bytes");
  expect(map(write(test::Bytes(63))).status(), Code::kInvalidProgram, "the file has 63 bytes");
  expect(status_of(test::Bytes(63)), Code::kInvalidProgram, "the file has 63 bytes");
}

TEST_F(Map, refuses_every_truncation) {
  const test::Bytes file = test::sum_model().build();
  for (size_t size = 0; size < file.size(); size += size < 200 ? 1 : 97) {
    EXPECT_EQ(status_of(test::Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size))).code(),
              Code::kInvalidProgram)
        << size;
  }
}

TEST(Header, refuses_another_version_by_both_numbers) {
  test::Bytes file = test::sum_model().build();
  test::put<uint32_t>(file, 8, 1);
  expect(status_of(file), Code::kUnsupportedVersion, "test.mote: version = 1: this runner reads version 3");
}

TEST(Header, refuses_fields_that_are_wrong) {
  const test::Bytes file = test::sum_model().build();
  const auto with = [&](size_t offset, auto value) {
    test::Bytes changed = file;
    test::put(changed, offset, value);
    return status_of(changed);
  };
  expect(with(0, 'm'), Code::kInvalidProgram, "not a .mote file");
  expect(with(12, uint32_t{60}), Code::kInvalidProgram, "header_bytes = 60");
  expect(with(16, uint64_t{0}), Code::kInvalidProgram, "program_bytes = 0");
  expect(with(16, uint64_t{file.size()}), Code::kInvalidProgram, "program_bytes = ");
  expect(with(16, UINT64_MAX), Code::kInvalidProgram, "program_bytes = 18446744073709551615");
  expect(with(24, uint64_t{file.size() - 1}), Code::kInvalidProgram, "truncated or appended to");
  expect(with(32, uint32_t{0}), Code::kInvalidProgram, "program_crc32 = 00000000: the program has checksum");
  expect(with(63, uint8_t{1}), Code::kInvalidProgram, "header.reserved: must be zero");
}

TEST(Header, refuses_a_program_with_one_bit_changed) {
  test::Bytes file = test::sum_model().build();
  file[100] ^= std::byte{4};
  expect(status_of(file), Code::kInvalidProgram, "so the file is damaged");
}

}  // namespace
}  // namespace mote
