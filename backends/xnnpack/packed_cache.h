// A file of packed weights beside the model: the next load maps it instead of packing, and its memory is the file's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/xnnpack/api.h"
#include "base/atomic_file.h"
#include "base/page_guard.h"
#include "base/status.h"
#include "runner/program/delegate.h"

namespace mote::xnnpack {

// What packed weights depend on: the program with its weights, the library, and the instructions that its kernels may
// use.
struct CacheIdentity {
  uint64_t model_bytes = 0;
  uint64_t library_bytes = 0;
  uint32_t program_crc32 = 0;
  uint32_t library_crc32 = 0;
  uint32_t cpu_features = 0;
  uint32_t architecture = 0;
  bool operator==(const CacheIdentity&) const = default;
};

// Where a program's packed weights are kept.
struct CachePlace {
  std::string path;
  CacheIdentity identity;
  std::optional<uint32_t> model_owner{};  // a user that is trusted as much as this process's
  bool guards_pages = true;

  // Nothing if packed weights are not to be kept: with MOTE_XNNPACK_CACHE=0, for a program that is not a file, and for
  // a library that cannot be read.
  static std::optional<CachePlace> find(const Api& api, const DelegateSource& source);
};

struct PackedName {
  std::string key;    // of the weight and all that is packed with it, the same at every load
  uint32_t seed = 0;  // XNNPACK's, for the kernel that reads it; 0 for what is not packed
  auto operator<=>(const PackedName&) const = default;
};

// A mapping of pages of a file. Behind them lie at least as many pages that read as zeros.
class CacheMapping {
 public:
  static Result<CacheMapping> make(const CachePlace& place, int descriptor, uint64_t bytes);
  CacheMapping(CacheMapping&& other) noexcept;
  CacheMapping& operator=(CacheMapping&&) = delete;
  ~CacheMapping();

  std::span<const std::byte> file() const { return {data_, file_bytes_}; }
  size_t readable_bytes() const { return readable_bytes_; }
  // As PageGuard: what was read since is not to be used.
  bool has_lost() const { return guard_.has_lost(); }

 private:
  CacheMapping(const std::byte* data, size_t file_bytes, size_t readable_bytes)
      : data_(data), file_bytes_(file_bytes), readable_bytes_(readable_bytes) {}
  const std::byte* data_;
  size_t file_bytes_;
  size_t readable_bytes_;
  PageGuard guard_;
};

// A file that was read and whose table and checksums are right, and that only this user or the model's owner can have
// written: it may hold any weights. Thread safety: any thread.
class PackedCache {
 public:
  // Errors: kFileNotFound, kFileUnreadable (also for a symbolic link and for a file that others can write to),
  // kFileChanged for another identity or a damaged file; each says what is wrong. Cost: a checksum over the file, on
  // several threads.
  static Result<PackedCache> open(const CachePlace& place);

  // Whether the file has a weight by this key, packed for any kernel.
  bool has(const std::string& key) const;
  // The bytes of a packed weight, in memory of which at least max_bytes can be read. Empty if the file has no such
  // weight, or one with more bytes.
  std::span<const std::byte> find(const PackedName& name, uint64_t max_bytes) const;
  bool has_lost() const { return mapping_.has_lost(); }

 private:
  struct Entry {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint32_t crc32 = 0;
  };
  explicit PackedCache(CacheMapping mapping) : mapping_(std::move(mapping)) {}
  Status read_table(std::span<const std::byte> table, uint64_t num_entries, uint64_t payload_end);
  bool checksums_hold() const;

  CacheMapping mapping_;
  std::map<PackedName, Entry> entries_;
};

// Writes such a file while weights are packed. Thread safety: one thread.
class PackedCacheWriter {
 public:
  // Errors, here and below: kFileUnwritable, kFileUnreadable.
  static Result<PackedCacheWriter> create(const CachePlace& place);
  // Returns: where in the file it begins
  Result<uint64_t> append(const PackedName& name, std::span<const std::byte> bytes);
  // Maps what was written so far. It stays readable whatever becomes of the file.
  Result<CacheMapping> map() const;
  // Gives the file its name.
  Status commit();

 private:
  PackedCacheWriter(CachePlace place, AtomicFile file) : place_(std::move(place)), file_(std::move(file)) {}
  CachePlace place_;
  AtomicFile file_;
  uint64_t end_ = 0;
  uint32_t num_entries_ = 0;
  std::vector<std::byte> table_;
};

}  // namespace mote::xnnpack
