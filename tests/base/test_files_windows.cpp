// Files on Windows: names in Unicode, replacement at once, what is no file, mapped pages.
#include <gtest/gtest.h>
#include <windows.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "base/path.h"
#include "base/windows.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

using Access = AtomicFile::Access;
using Temporary = AtomicFile::Temporary;

constexpr const char* kName = "f\xc3\xb6o \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x98\x80.txt";

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("mote_files_" + std::to_string(::GetCurrentProcessId()));
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return to_text(folder_ / to_path(name)); }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string read(const std::string& path) {
    std::ifstream stream{to_path(path)};
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  static void put(const std::string& path, const std::string& text) {
    std::ofstream(to_path(path), std::ios::binary) << text;
  }
  Status save(const std::string& name, const std::string& text, Temporary temporary = Temporary::kUnnamed) const {
    Result<AtomicFile> file = AtomicFile::create(path(name), Access::kShared, {Links::kFollow, temporary});
    if (!file.ok()) return file.status();
    if (Status written = file->write(std::as_bytes(std::span(text))); !written.ok()) return written;
    return file->commit();
  }

  fs::path folder_;
};

TEST_F(Files, have_names_in_unicode) {
  EXPECT_EQ(windows::to_utf8(*windows::to_utf16(kName)), kName);
  EXPECT_FALSE(windows::to_utf16("\xff").has_value());
  ASSERT_TRUE(save(kName, "text").ok());
  EXPECT_EQ(read(path(kName)), "text");
  const Result<OpenedFile> opened = open_regular_file(path(kName));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(opened->info.bytes, 4);
  EXPECT_TRUE(append_to_file(path(kName), "\nmore"));
  EXPECT_EQ(read(path(kName)), "text\nmore");
}

TEST_F(Files, have_long_names) {
  const std::wstring native = windows::native_path(path(std::string(100, 'a') + "/" + std::string(200, 'b')));
  EXPECT_TRUE(native.starts_with(L"\\\\?\\")) << windows::to_utf8(native);
  EXPECT_EQ(native.find(L'/'), std::wstring::npos);
  EXPECT_EQ(windows::native_path("file"), L"file");
}

TEST_F(Files, appear_when_they_are_committed_and_replace_at_once) {
  for (const Temporary temporary : {Temporary::kUnnamed, Temporary::kNamed}) {
    put(path("file"), "old and longer");
    {
      Result<AtomicFile> file = AtomicFile::create(path("file"), Access::kShared, {Links::kFollow, temporary});
      ASSERT_TRUE(file.ok()) << file.status().message();
      ASSERT_TRUE(file->write(std::as_bytes(std::span("xyz", 3))).ok());
      ASSERT_TRUE(file->overwrite_start(std::as_bytes(std::span("new", 3))).ok());
      EXPECT_EQ(read(path("file")), "old and longer");
      const Status committed = file->commit();
      ASSERT_TRUE(committed.ok()) << committed.message();
      EXPECT_EQ(file->descriptor(), -1);
    }
    EXPECT_EQ(read(path("file")), "new");
    EXPECT_EQ(num_files(), 1u);
  }
}

TEST_F(Files, leave_nothing_without_a_commit) {
  for (const Temporary temporary : {Temporary::kUnnamed, Temporary::kNamed}) {
    Result<AtomicFile> file = AtomicFile::create(path("file"), Access::kShared, {Links::kFollow, temporary});
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE(file->write(std::as_bytes(std::span("xyz", 3))).ok());
  }
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(Files, that_a_killed_writer_left_are_removed_and_those_that_are_written_are_not) {
  put(path("file.tmp-0123456789abcdef"), "half");
  put(path("other.tmp-0123456789abcdef"), "half");
  {
    const Result<AtomicFile> writer =
        AtomicFile::create(path("file"), Access::kShared, {Links::kFollow, Temporary::kNamed});
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ(num_files(), 2u);
    ASSERT_TRUE(save("file", "text").ok());
    EXPECT_EQ(num_files(), 3u);
  }
  EXPECT_EQ(num_files(), 2u);
}

TEST_F(Files, are_refused_where_something_else_is) {
  fs::create_directory(folder_ / "folder");
  EXPECT_EQ(open_regular_file(path("folder")).status().message(),
            path("folder") + ": is a folder: must be a regular file");
  EXPECT_EQ(save("folder", "text").message(),
            path("folder") + ": is a folder: must be a regular file, or the name of a new one");
  EXPECT_EQ(open_regular_file("NUL").status().message(), "NUL: is a device: must be a regular file");
  EXPECT_EQ(open_regular_file(path("missing")).status().message(),
            path("missing") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(open_regular_file(path("missing")).status().code(), Code::kFileNotFound);
  EXPECT_EQ(open_regular_file("\xff").status().code(), Code::kFileNotFound);
  EXPECT_EQ(save("missing\\file", "text").code(), Code::kFileUnwritable);
}

TEST_F(Files, are_mapped_from_any_place_and_cannot_become_shorter_meanwhile) {
  std::string text(200000, 'a');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  put(path("file"), text);
  const Result<OpenedFile> opened = open_regular_file(path("file"));
  ASSERT_TRUE(opened.ok());
  for (const int64_t offset : {0, 1, 4096, 65536, 70001}) {
    const auto mapped = MappedPages::map("file", opened->descriptor.get(), offset, 1000);
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped->part().data()), 1000),
              text.substr(static_cast<size_t>(offset), 1000));
    std::error_code error;
    fs::resize_file(path("file"), 10, error);
    EXPECT_TRUE(error) << "somebody made a mapped file shorter";
  }
}

TEST(Pages, are_zeros_at_first_and_once_they_are_dropped) {
  constexpr size_t kBytes = 100000;
  std::byte* pages = reserve_pages(kBytes);
  ASSERT_NE(pages, nullptr);
  EXPECT_EQ(pages[kBytes - 1], std::byte{0});
  pages[kBytes - 1] = std::byte{1};
  drop_pages(pages, kBytes);
  EXPECT_EQ(pages[kBytes - 1], std::byte{0});
  release_pages(pages, kBytes);
  EXPECT_GT(physical_memory_bytes(), 1 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(allocate_aligned(1000).get()) % 64, 0u);
}

}  // namespace
}  // namespace mote
