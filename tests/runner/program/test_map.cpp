#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runner/program/mapped.h"
#include "tests/runner/program/map_folder.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

class Map : public MapFolder {};

Status status_of(const test::Bytes& bytes) { return map_bytes("test.mote", bytes).status(); }

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
  expect(appended->check_unchanged(), Code::kFileChanged, path + ": the file was changed after it was loaded");
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

bool has_bytes(const Mapped& mapped, const test::Bytes& file) {
  return std::equal(file.begin(), file.end(), mapped.file_bytes().begin(), mapped.file_bytes().end());
}

// `file` with `before` bytes in front of it and some behind, open.
class Package {
 public:
  Package(const std::string& path, size_t before, const test::Bytes& file) {
    std::ofstream stream(path, std::ios::binary);
    const auto write = [&](const test::Bytes& bytes) {
      stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    write(test::Bytes(before));
    write(file);
    write(test::Bytes(100));
    stream.close();
    descriptor_ = ::open(path.c_str(), O_RDONLY);
    part_ = {"asset", descriptor_, static_cast<int64_t>(before), static_cast<int64_t>(file.size())};
  }
  ~Package() { ::close(descriptor_); }
  const FilePart& part() const { return part_; }
  FilePart with(int64_t offset, int64_t length) const { return {"asset", descriptor_, offset, length}; }

 private:
  int descriptor_;
  FilePart part_;
};

TEST_F(Map, gives_the_bytes_of_a_part_wherever_it_begins) {
  const test::Bytes file = test::sum_model().build();
  for (const size_t before : {0, 1, 4, 64, 100, 4096, 4096 + 64, 70000}) {
    const Package package((folder_ / "package").string(), before, file);
    for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
      const auto mapped = map(package.part(), mode);
      ASSERT_TRUE(mapped.ok()) << before << mapped.status().message();
      EXPECT_TRUE(has_bytes(*mapped, file)) << before;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->file_bytes().data()) % 64, 0u) << before;
      EXPECT_FALSE(mapped->has_path());
    }
  }
}

TEST_F(Map, needs_the_descriptor_no_longer_than_the_call_and_leaves_its_position) {
  const std::string path = write(test::sum_model().build());
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(::lseek(descriptor, 5, SEEK_SET), 5);
  const auto mapped = map(FilePart{"asset", descriptor});
  EXPECT_EQ(::lseek(descriptor, 0, SEEK_CUR), 5);
  ::close(descriptor);
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  EXPECT_TRUE(mapped->check_unchanged().ok());
  fs::rename(path, folder_ / "elsewhere.mote");
  EXPECT_TRUE(mapped->check_unchanged().ok());
  std::ofstream(folder_ / "elsewhere.mote", std::ios::binary | std::ios::app) << "x";
  expect(mapped->check_unchanged(), Code::kFileChanged, "asset: the file was changed");
}

TEST_F(Map, refuses_a_part_that_is_not_within_its_file) {
  const test::Bytes file = test::sum_model().build();
  const Package package((folder_ / "package").string(), 64, file);
  const auto size = static_cast<int64_t>(file.size());
  const auto refused = [&](int64_t offset, int64_t length, Code code, const std::string& message) {
    for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead})
      expect(map(package.with(offset, length), mode).status(), code, message);
  };
  refused(-1, 10, Code::kInvalidArgument, "asset: offset = -1: must be 0.." + std::to_string(size + 164));
  refused(size + 165, -1, Code::kInvalidArgument, "offset = ");
  refused(INT64_MAX, INT64_MAX, Code::kInvalidArgument, "offset = 9223372036854775807");
  refused(size + 164, -1, Code::kInvalidProgram, "asset: the file has 0 bytes");
  refused(64, 0, Code::kInvalidProgram, "asset: the file has 0 bytes");
  refused(64, -2, Code::kInvalidArgument, "asset: length = -2: must be at most " + std::to_string(size + 100));
  refused(64, size + 101, Code::kInvalidArgument, "length = ");
  refused(1, INT64_MAX, Code::kInvalidArgument, "length = 9223372036854775807");
  refused(64, -1, Code::kInvalidProgram, "truncated or appended to");
  refused(64, size - 1, Code::kInvalidProgram, "truncated or appended to");
  refused(0, -1, Code::kInvalidProgram, "not a .mote file");
}

TEST(MapMemory, uses_aligned_bytes_in_place_and_lets_go_of_their_owner_at_the_end) {
  test::Bytes file = test::sum_model().build();
  alignas(64) static std::byte memory[1 << 18];
  ASSERT_LT(file.size() + 1, sizeof memory);
  for (const size_t begin : {0, 1}) {
    for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
      std::copy(file.begin(), file.end(), memory + begin);
      auto owner = std::make_shared<int>(0);
      const std::weak_ptr<int> watched = owner;
      {
        const auto mapped = map(MemoryBytes{"m", {memory + begin, file.size()}, std::move(owner)}, mode);
        ASSERT_TRUE(mapped.ok()) << mapped.status().message();
        EXPECT_TRUE(has_bytes(*mapped, file));
        const bool is_in_place = begin == 0 && mode == LoadMode::kMap;
        EXPECT_EQ(mapped->file_bytes().data() == memory + begin, is_in_place);
        EXPECT_EQ(watched.expired(), !is_in_place);
        EXPECT_TRUE(mapped->check_unchanged().ok());
      }
      EXPECT_TRUE(watched.expired());
    }
  }
  for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead})
    expect(map(MemoryBytes{"m", {}, nullptr}, mode).status(), Code::kInvalidProgram, "m: the file has 0 bytes");
}

TEST_F(Map, tells_how_much_is_read_and_stops_when_it_is_told_to) {
  test::Bytes file = test::sum_model().build();
  const size_t size = (size_t{20} << 20) + 5;
  file.resize(size);
  test::put<uint64_t>(file, 24, size);
  const std::string path = write(file);
  std::vector<double> fractions;
  const auto loaded = map(path, LoadMode::kRead, [&](double fraction) {
    fractions.push_back(fraction);
    return Status();
  });
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ASSERT_EQ(fractions.size(), 3u);
  EXPECT_EQ(fractions[0], 0.0);
  EXPECT_NEAR(fractions[2], 16.0 / 20, 1e-6);
  for (size_t stop = 0; stop < fractions.size(); ++stop) {
    size_t calls = 0;
    const auto stopping = [&](double) { return calls++ == stop ? Status(Code::kCancelled, "stop") : Status(); };
    expect(map(path, LoadMode::kRead, stopping).status(), Code::kCancelled, "stop");
    EXPECT_EQ(calls, stop + 1);
    calls = 0;
    expect(map(MemoryBytes{"m", file, nullptr}, LoadMode::kRead, stopping).status(), Code::kCancelled, "stop");
  }
}

TEST_F(Map, reports_what_cannot_be_opened) {
  expect(map((folder_ / "missing.mote").string()).status(), Code::kFileNotFound, "missing.mote: cannot be opened");
  expect(map(folder_.string()).status(), Code::kFileUnreadable,
         "is a folder: must be a regular file; 'mote export CHECKPOINT'");
}

TEST_F(Map, says_what_it_is_that_somebody_took_for_a_model) {
  const auto says = [&](std::string start, const std::string& message) {
    start.resize(200);
    const auto bytes = std::as_bytes(std::span(start));
    expect(map(write({bytes.begin(), bytes.end()})).status(), Code::kInvalidProgram, "not a .mote file: " + message);
  };
  says("GGUF\x03", "it is a GGUF file; 'mote export");
  says(std::string("\x20\0\0\0\0\0\0\0{\"a\"", 12), "it is a safetensors file, weights of a checkpoint; 'mote export");
  says(std::string("PK\x03\x04", 4), "it is a zip archive, or weights of PyTorch; 'mote export");
  says("\n <!DocType html><html>", "it is a web page");
  says("<html>", "it is a web page");
  says("version https://git-lfs.github.com/spec/v1\noid", "it is a Git LFS pointer");
  says("\x1f\x8b\x08", "it is compressed with gzip");
  says("MOTESESS", "it is a saved session");
  says("something", "the first 8 bytes are not MOTE");
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
  expect(status_of(file), Code::kUnsupportedVersion, "test.mote: version = 1: this runner reads version 5");
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
