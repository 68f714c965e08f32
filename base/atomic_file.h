// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace mote {

// It is written under another name in the same folder and takes its own name at commit; without commit it is removed.
// If the process is killed before that, the next writer of the same file removes what was left.
class AtomicFile {
 public:
  // Errors, here and below: kFileUnwritable naming the file and what the system says.
  static Result<AtomicFile> create(const std::string& path);
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
