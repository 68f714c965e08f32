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

// Whether the system reads pages of the file when they are needed, and may drop them again, or all of it is read at
// once into memory of the process: for file systems that are slow or may vanish.
enum class LoadMode { kMap, kRead };

// Owns the bytes of one .mote file: a read-only mapping or a copy in memory, and a private copy of the flatbuffer, so
// that what `verify` proved of the program stays true even if another process writes to the file. Thread safety:
// immutable. Lifetime: spans live as long as the Mapped that gave them, moves included.
class Mapped {
 public:
  Mapped(Mapped&&) noexcept;
  Mapped& operator=(Mapped&&) noexcept;
  ~Mapped();

  const std::string& name() const;                   // the path, for messages
  bool is_file() const;                              // name() is a path; if not, it was made by map_bytes
  std::span<const std::byte> file_bytes() const;     // the whole file
  std::span<const std::byte> program_bytes() const;  // the flatbuffer, 64-byte aligned

  // Errors: kFileChanged if the file on disk is no longer the one that was mapped (size, time, identity). One that was
  // read may change.
  Status check_unchanged() const;

 private:
  friend Result<Mapped> map(const std::string& path, LoadMode mode);
  friend Result<Mapped> map_bytes(std::string name, std::span<const std::byte> bytes);
  struct State;
  explicit Mapped(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Maps or reads the file at `path` and checks header, sizes and the program's checksum.
// Errors: kFileNotFound, kFileUnreadable, kUnsupportedVersion, kInvalidProgram, kOutOfMemory.
Result<Mapped> map(const std::string& path, LoadMode mode = LoadMode::kMap);

// The same for bytes in memory, which are copied. check_unchanged always succeeds.
Result<Mapped> map_bytes(std::string name, std::span<const std::byte> bytes);

}  // namespace mote
