// First stage of loading: a .mote file in memory, its header checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace mote {

// Owns the bytes of one .mote file: a read-only mapping, and a private copy of the flatbuffer, so that what `verify`
// proved of the program stays true even if another process writes to the file.
// Thread safety: immutable. Lifetime: spans live as long as the Mapped that gave them, moves included.
class Mapped {
 public:
  Mapped(Mapped&&) noexcept;
  Mapped& operator=(Mapped&&) noexcept;
  ~Mapped();

  const std::string& name() const;                   // the path, for messages
  std::span<const std::byte> file_bytes() const;     // the whole file
  std::span<const std::byte> program_bytes() const;  // the flatbuffer, 64-byte aligned

  // Errors: kFileChanged if the file on disk is no longer the one that was mapped (size, time, identity).
  Status check_unchanged() const;

 private:
  friend Result<Mapped> map(const std::string& path);
  friend Result<Mapped> map_bytes(std::string name, std::span<const std::byte> bytes);
  struct State;
  explicit Mapped(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Maps the file at `path` and checks header, sizes and the program's checksum.
// Errors: kFileNotFound, kFileUnreadable, kUnsupportedVersion, kInvalidProgram, kOutOfMemory.
Result<Mapped> map(const std::string& path);

// The same for bytes in memory, which are copied. check_unchanged always succeeds.
Result<Mapped> map_bytes(std::string name, std::span<const std::byte> bytes);

}  // namespace mote
