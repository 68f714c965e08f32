// A file that is written at its end, over several runs of a program, and takes its name when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/open_file.h"
#include "base/status.h"

namespace mote {

class GrowingFile {
 public:
  // Opens what is there, or makes it, folders too. Errors, here and below: kFileUnwritable naming the file and what the
  // system says.
  static Result<GrowingFile> open(const std::string& path);

  int64_t bytes() const { return bytes_; }
  // After an error `bytes` is what was written.
  Status append(std::span<const std::byte> bytes);
  Status truncate(int64_t bytes);
  // From a place in the file.
  ReadBytes read_at(int64_t offset, std::span<std::byte> to) const { return read_some_at(file_.get(), offset, to); }
  // Syncs the file, gives it the name `target`, over what is there, and syncs the folder. It is closed then.
  Status commit(const std::string& target);

 private:
  GrowingFile(std::string path, FileDescriptor file, int64_t bytes)
      : path_(std::move(path)), file_(std::move(file)), bytes_(bytes) {}

  std::string path_;
  FileDescriptor file_;
  int64_t bytes_ = 0;
};

}  // namespace mote
