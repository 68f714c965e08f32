// First stage of loading: a .mote file in memory, its header checked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runner/program/source.h"

namespace mote {

inline constexpr size_t kHeaderBytes = 64;  // the program follows

// What the header of a file says.
struct FileSizes {
  uint64_t program_bytes = 0;
  uint64_t file_bytes = 0;
};

// beginning: at least the header, if it is a file of Mote's. Errors: kInvalidProgram, kUnsupportedVersion, naming the
// field.
Result<FileSizes> file_sizes(const std::string& name, std::span<const std::byte> beginning);

// Owns the bytes of one .mote file, of its weights where they are in a file of their own, and a private copy of the
// flatbuffer, so that what `verify` proved of the program stays true even if another process writes to the file. Thread
// safety: immutable, but for weights that are made later, which any thread may ask for. Lifetime: spans live as long as
// the Mapped that gave them, moves included.
class Mapped {
 public:
  const std::string& name() const { return file_.name(); }  // the path, or what the source says, for messages
  bool has_path() const { return file_.has_path(); }        // name() is one
  std::optional<uint32_t> owner() const {
    return file_.owner();
  }  // the user that the file belongs to; of memory nobody
  std::span<const std::byte> file_bytes() const { return file_.bytes(); }  // the whole file
  // Of the file and of that of its weights, as SourceBytes::mapped_pages; those that are mapped.
  std::vector<std::span<const std::byte>> mapped_pages() const;
  // The flatbuffer, 64-byte aligned.
  std::span<const std::byte> program_bytes() const { return {program_.get(), program_bytes_}; }

  // nullptr: the weights are in the file, or not made yet.
  const SourceBytes* weights_file() const { return weights_->ready.load(); }
  void add_weights_file(SourceBytes weights) { weights_->add(std::move(weights)); }
  // The weights file, made by the first call that succeeds; others wait for it. Errors: those of `make`.
  Status require_weights_file(const std::function<Result<SourceBytes>()>& make) const;

  // Those of SourceBytes, of both files.
  Status check_unchanged() const;
  Status check_readable() const;
  void evict() const;

 private:
  friend Result<Mapped> map(const Source& source, LoadMode mode, const Progress& progress);
  explicit Mapped(SourceBytes file) : file_(std::move(file)) {}
  Status read_program();

  struct WeightsFile {
    std::mutex making;
    std::optional<SourceBytes> bytes;
    std::atomic<const SourceBytes*> ready = nullptr;
    void add(SourceBytes weights) { ready = &bytes.emplace(std::move(weights)); }
  };

  SourceBytes file_;
  std::unique_ptr<WeightsFile> weights_ = std::make_unique<WeightsFile>();
  AlignedMemory program_;
  size_t program_bytes_ = 0;
};

// Maps or reads a file and checks header, sizes and the program's checksum. Errors: those of SourceBytes::take,
// kUnsupportedVersion, kInvalidProgram.
Result<Mapped> map(const Source& source, LoadMode mode = LoadMode::kMap, const Progress& progress = {});

// Of a copy of `bytes`.
inline Result<Mapped> map_bytes(std::string name, std::span<const std::byte> bytes) {
  return map(MemoryBytes{std::move(name), bytes, nullptr}, LoadMode::kRead);
}

}  // namespace mote
