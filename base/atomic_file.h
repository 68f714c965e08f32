// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace mote {

// Written under another name in the same folder; without commit nothing is left of it. What a process left that was
// killed meanwhile, the next one that writes the file removes.
class AtomicFile {
 public:
  // Errors, here and below: kFileUnwritable naming the file and what the system says.
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  // Over what the file starts with.
  Status overwrite_start(std::span<const std::byte> bytes);
  // For reading what was written; -1 once it is committed.
  int descriptor() const;
  // Synced, then renamed.
  Status commit();

 private:
  struct State;
  explicit AtomicFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mote
