// Opening files that anybody may have named, and reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace mote {

// Owns a file descriptor, on Windows one of the C library; -1: none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return number_; }
  // Gives it up: the caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

enum class Links { kFollow, kRefuse };

enum class FileKind : uint8_t { kRegular, kFolder, kPipe, kSocket, kLink, kDevice };

// "a folder", "a named pipe", ...
const char* name_of(FileKind kind);
// Errors: kFileUnreadable saying what it is.
Status require_regular(const std::string& name, FileKind kind);

struct FileInfo {
  FileKind kind = FileKind::kRegular;
  int64_t bytes = 0;
  std::optional<uint32_t> owner;  // nothing where users have no numbers
  bool others_may_write = false;
  // What tells one version of a file on disk from another.
  struct Identity {
    uint64_t device = 0;
    uint64_t number = 0;  // on the device
    int64_t bytes = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    bool operator==(const Identity&) const = default;
  };
  Identity identity;
};

struct OpenedFile {
  FileDescriptor descriptor;
  FileInfo info;
};

// Opens a regular file for reading. What is none is refused at once: nothing waits for the writer of a named pipe.
// Errors: kFileNotFound, kFileUnreadable, each naming the file and what it is.
Result<OpenedFile> open_regular_file(const std::string& path, Links links = Links::kFollow);
// The same, but also what is no regular file, such as the pipe that a shell makes of <(command).
Result<FileDescriptor> open_any_file(const std::string& path);

// Writes at the end of a file, which is made for its owner alone if there is none. Waits for no reader of a named pipe.
// False: not all of it could be written.
bool append_to_file(const std::string& path, std::string_view text);

// Nothing: it is not open.
std::optional<FileInfo> info_of(int descriptor);
// What has that name, links not followed. Nothing: there is nothing, or the system does not tell.
std::optional<FileInfo> info_of_name(const std::string& path);
// The user that files of this process belong to; nothing where users have no numbers.
std::optional<uint32_t> this_user();
// Another descriptor of the same open file; -1: the system has none left.
FileDescriptor duplicate(int descriptor);

struct ReadBytes {
  size_t count = 0;   // 0: the end, if there is no error
  std::string error;  // what the system says; empty: none
};
// Reads some bytes, at most to.size(), from where the last call ended.
ReadBytes read_some(int descriptor, std::span<std::byte> to);
// From a place in the file.
ReadBytes read_some_at(int descriptor, int64_t offset, std::span<std::byte> to);

}  // namespace mote
