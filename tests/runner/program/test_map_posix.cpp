// What Windows has not: files that lose their names or become shorter while they are mapped, descriptors of anything.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runner/program/mapped.h"
#include "tests/runner/program/map_folder.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

class MapPosix : public MapFolder {};

TEST_F(MapPosix, goes_on_with_the_file_that_it_mapped_when_the_path_leads_elsewhere) {
  const test::Bytes file = test::sum_model().build();
  const auto replaced = map(write(file, "other.mote"));
  fs::rename(write(test::Bytes(file.size()), "new.mote"), folder_ / "other.mote");
  const auto removed = map(write(file, "gone.mote"));
  fs::remove(folder_ / "gone.mote");
  for (const Mapped* mapped : {&*replaced, &*removed}) {
    EXPECT_TRUE(mapped->check_unchanged().ok());
    EXPECT_TRUE(std::equal(file.begin(), file.end(), mapped->file_bytes().begin(), mapped->file_bytes().end()));
  }
}

TEST_F(MapPosix, a_file_that_becomes_shorter_is_an_error_and_not_the_end) {
  const test::Bytes file = test::sum_model().build();
  const std::string path = write(file);
  const auto mapped = map(path);
  EXPECT_TRUE(mapped->check_readable().ok());
  fs::resize_file(path, 0);
  const std::byte first = *static_cast<const volatile std::byte*>(mapped->file_bytes().data());
  EXPECT_EQ(first, std::byte{0});
  expect(mapped->check_readable(), Code::kFileChanged, path + ": the file became shorter");
  expect(mapped->check_unchanged(), Code::kFileChanged, path + ": the file became shorter");
  const std::span<const std::byte> program = mapped->program_bytes();
  EXPECT_TRUE(std::equal(program.begin(), program.end(), file.begin() + 64));
}

TEST_F(MapPosix, refuses_a_descriptor_that_is_no_open_file) {
  const auto refused = [&](int descriptor, Code code, const std::string& message) {
    for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead})
      expect(map(FilePart{"asset", descriptor, 0, 64}, mode).status(), code, message);
  };
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  refused(ends[0], Code::kFileUnreadable, "asset: is a named pipe: must be a regular file");
  ::close(ends[0]);
  ::close(ends[1]);
  refused(ends[0], Code::kInvalidArgument, format("asset: descriptor = %d: is not open", ends[0]));
  refused(-1, Code::kInvalidArgument, "descriptor = -1: is not open");
  const int folder = ::open(folder_.c_str(), O_RDONLY);
  refused(folder, Code::kFileUnreadable, "must be a regular file");
  ::close(folder);
  const int unreadable = ::open(write(test::sum_model().build()).c_str(), O_WRONLY);
  refused(unreadable, Code::kFileUnreadable, "asset: cannot be ");
  ::close(unreadable);
}

TEST_F(MapPosix, refuses_a_named_pipe_at_once) {
  const std::string fifo = (folder_ / "fifo.mote").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect(map(fifo).status(), Code::kFileUnreadable, "is a named pipe: must be a regular file");
}

}  // namespace
}  // namespace mote
