// First stage of loading: a .mote file in memory, its header checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/status.h"
#include "runner/program/progress.h"

namespace mote {

// kMap: the system reads pages of the file when they are needed, and may drop them again. kMapUnguarded: the same, but
// for applications that want SIGBUS for themselves: a page that cannot be read ends the process. kRead: the whole file
// is read at once into memory of the process, for file systems that are slow or may vanish.
enum class LoadMode { kMap, kMapUnguarded, kRead };

// A part of an open file, such as an asset of a package.
struct FilePart {
  std::string name;     // for messages
  int descriptor = -1;  // of a regular file, open for reading; needed only while the part is mapped
  int64_t offset = 0;
  int64_t length = -1;  // bytes; -1: to the end of the file
};

// Bytes in memory, which do not change while `owner` lives.
struct MemoryBytes {
  std::string name;  // for messages
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// A path, or where else a .mote file is.
using Source = std::variant<std::string, FilePart, MemoryBytes>;

// Owns the bytes of one .mote file: a read-only mapping, memory that was given or a copy, and a private copy of the
// flatbuffer, so that what `verify` proved of the program stays true even if another process writes to the file. Thread
// safety: immutable. Lifetime: spans live as long as the Mapped that gave them, moves included.
class Mapped {
 public:
  Mapped(Mapped&&) noexcept;
  Mapped& operator=(Mapped&&) noexcept;
  ~Mapped();

  const std::string& name() const;                   // the path, or what the source says, for messages
  bool has_path() const;                             // name() is one
  std::optional<uint32_t> owner() const;             // the user that the file belongs to; of memory nobody
  std::span<const std::byte> file_bytes() const;     // the whole file
  std::span<const std::byte> program_bytes() const;  // the flatbuffer, 64-byte aligned

  // Errors: kFileChanged if the file that was mapped, or that holds the part, has another size or time of change. Its
  // path may lead to another file by now, or nowhere: what is mapped stays. A file that was read into memory may
  // change.
  Status check_unchanged() const;
  // Errors: kFileChanged if a page of the mapping could not be read and was read as zeros. Whoever read from it asks
  // this before the result is used. Cost: none to speak of.
  Status check_readable() const;

 private:
  friend Result<Mapped> map(const Source& source, LoadMode mode, const Progress& progress);
  struct State;
  explicit Mapped(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Maps or reads a file and checks header, sizes and the program's checksum. Bytes in memory are used where they are, or
// copied by kRead; so is what does not begin at a multiple of 64 bytes, where kernels cannot read it in place.
// Errors: kFileNotFound, kFileUnreadable, kUnsupportedVersion, kInvalidProgram, kOutOfMemory; kInvalidArgument for a
// descriptor that is not open, or a part that is not within its file; what `progress` gives.
Result<Mapped> map(const Source& source, LoadMode mode = LoadMode::kMap, const Progress& progress = {});

// Of a copy of `bytes`.
inline Result<Mapped> map_bytes(std::string name, std::span<const std::byte> bytes) {
  return map(MemoryBytes{std::move(name), bytes, nullptr}, LoadMode::kRead);
}

}  // namespace mote
