// Where a file of Mote's is, and its bytes in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/memory.h"
#include "base/open_file.h"
#include "base/page_guard.h"
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

// Fills `to` with what begins at byte `begin` of a part. Errors: kFileUnreadable, also for a file that ends early.
Status read_exactly(const FilePart& part, size_t begin, std::span<std::byte> to);

// Bytes in memory, which do not change while `owner` lives.
struct MemoryBytes {
  std::string name;  // for messages
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// A path, or where else a .mote file is.
using Source = std::variant<std::string, FilePart, MemoryBytes>;

// Owns the bytes of a source: a read-only mapping, memory that was given, or a copy. Thread safety: immutable.
// Lifetime: `bytes` live as long as the SourceBytes that gave them, moves included.
class SourceBytes {
 public:
  // Bytes in memory are used where they are, or copied by kRead; so is what does not begin at a multiple of 64 bytes,
  // where kernels cannot read it in place. Errors: kFileNotFound, kFileUnreadable, kOutOfMemory; kInvalidArgument for a
  // descriptor that is not open, or a part that is not within its file; what `progress` gives.
  static Result<SourceBytes> take(const Source& source, LoadMode mode, const Progress& progress);

  const std::string& name() const { return name_; }        // the path, or what the source says, for messages
  bool has_path() const { return has_path_; }              // name() is one
  std::optional<uint32_t> owner() const { return user_; }  // the user that the file belongs to; of memory nobody
  std::span<const std::byte> bytes() const { return bytes_; }
  // What is mapped of the file, from its first page on; empty: nothing is.
  std::span<const std::byte> mapped_pages() const { return mapping_.pages(); }

  // Errors: kFileChanged if the file that was mapped, or that holds the part, has another size or time of change. Its
  // path may lead to another file by now, or nowhere: what is mapped stays. A file that was read into memory may
  // change.
  Status check_unchanged() const;
  // Errors: kFileChanged if a page of the mapping could not be read and was read as zeros. Whoever read from it asks
  // this before the result is used. Cost: none to speak of.
  Status check_readable() const;
  // Gives the memory of mapped pages back to the system, which reads them again when they are needed.
  void evict() const { mapping_.evict(); }

 private:
  Status take_path(const std::string& path, LoadMode mode, const Progress& progress);
  Status take_part(const FilePart& source, LoadMode mode, const Progress& progress);
  Status take_memory(const MemoryBytes& memory, LoadMode mode, const Progress& progress);
  Status map_part(const FilePart& part, bool is_guarded);
  Status read_part(const FilePart& part, const Progress& progress);
  Status allocate(size_t length);

  std::string name_;
  bool has_path_ = false;
  std::optional<uint32_t> user_;
  std::span<const std::byte> bytes_;
  AlignedMemory copy_;                  // of the file
  std::shared_ptr<const void> memory_;  // or what owns the memory that it is in
  MappedPages mapping_;                 // or the pages that it is in
  PageGuard guard_;                     // of those; ends before them
  FileInfo::Identity identity_;         // of what is mapped
  FileDescriptor descriptor_;           // of what is mapped: its path may lead to another file by now
};

}  // namespace mote
