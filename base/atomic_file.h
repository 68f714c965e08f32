// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/open_file.h"
#include "base/status.h"

namespace mote {

// It is written without a name and takes one at commit; without commit nothing stays, however the process ends. Where
// the system has no files without names it is written under another name in the same folder: what a killed process
// leaves of those is removed by the next writer of the same file.
class AtomicFile {
 public:
  enum class Temporary { kUnnamed, kNamed };
  // Who may read and write the file. kOwner: its owner alone, also where it replaces one that others could read.
  // kShared: whom the umask lets, as with any program's output; a file that is replaced keeps its mode.
  enum class Access { kOwner, kShared };
  struct Options {
    Links links = Links::kFollow;               // kFollow: a symbolic link stays and what it leads to is replaced
    Temporary temporary = Temporary::kUnnamed;  // kNamed: as where the system has no files without names
  };

  // path: what is there must be a regular file. Errors, here and below: kFileUnwritable naming the file and what the
  // system says, or what is there instead of a file.
  static Result<AtomicFile> create(const std::string& path, Access access, const Options& options);
  static Result<AtomicFile> create(const std::string& path, Access access) {
    return create(path, access, {Links::kFollow, Temporary::kUnnamed});
  }
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  // Replaces the first bytes of what was written.
  Status overwrite_start(std::span<const std::byte> bytes);
  // A descriptor that reads what was written; -1 once the file is committed.
  int descriptor() const;
  // Syncs the file, gives it its name and syncs the folder, so that the name survives a crash.
  Status commit();

 private:
  struct State;
  explicit AtomicFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mote
