// Opening files that anybody may have named.
#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>

#include "base/status.h"

namespace mote {

// Owns a file descriptor; -1: none.
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

struct OpenedFile {
  FileDescriptor descriptor;
  struct stat info;
};

// Opens a regular file for reading. What is none is refused at once: nothing waits for the writer of a named pipe.
// Errors: kFileNotFound, kFileUnreadable, each naming the file and what it is.
Result<OpenedFile> open_regular_file(const std::string& path, Links links = Links::kFollow);

// What a file that is not regular is: "a folder", "a named pipe", ...
const char* kind_of_file(mode_t mode);

}  // namespace mote
