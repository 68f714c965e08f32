// Files by which processes tell each other what they are at.
#pragma once

#include <optional>
#include <string>

#include "base/open_file.h"
#include "base/status.h"

namespace mote {

// Held until it is destroyed, or its process ends.
class FileLock {
 public:
  // Takes the lock whose file is `path`, which is made if there is none, folders too. Nothing: another holder has it,
  // in this process or another one. Errors: kFileUnwritable.
  static Result<std::optional<FileLock>> try_take(const std::string& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

// Notes, as long as the descriptor is open, that its file is in use. iOS ends processes that keep such a note in a
// shared folder while they are suspended, so none is made there.
void note_use(int descriptor);
// Whether a process has noted that. False on systems whose open files cannot be removed anyway.
bool is_in_use(const std::string& path);

}  // namespace mote
