// The static tensors and the weights packed by XNNPACK that the parts of a program share. Each is kept once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/xnnpack/api.h"
#include "backends/xnnpack/graph.h"
#include "backends/xnnpack/packed_cache.h"

namespace mote::xnnpack {

// Zeroed pages of memory whose content can be given back while their addresses stay readable.
class Pages {
 public:
  static Result<Pages> make(size_t bytes);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&&) = delete;
  ~Pages();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Gives the memory back. From then on the pages read as zeros.
  void drop();

 private:
  Pages(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  size_t bytes_;
};

// A static value of a graph, as XNNPACK gets it.
struct StaticTensor {
  const void* data = nullptr;
  const float* row_scales = nullptr;       // int8 forms and int4_rows
  const uint16_t* block_scales = nullptr;  // int4_blocks, before they are packed
  int64_t block_size = 0;
};

// XNNPACK finds packed weights by the address of what they were packed from. That address stays reserved, but its
// memory is given back once a runtime has packed it; runtimes that come later find the packed weights and never read
// it. With a cache nothing is unpacked for a kernel that it has; without one that could be read, what is packed is
// written to a file part by part, whose pages then take the place of the private ones. Thread safety: `add`,
// `finish_part` and `finish` from one thread; afterwards all else from any.
class PackedWeights {
 public:
  PackedWeights();
  explicit PackedWeights(PackedCache cache) : PackedWeights() { cache_.emplace(std::move(cache)); }
  explicit PackedWeights(PackedCacheWriter writer) : PackedWeights() { writer_.emplace(std::move(writer)); }
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // The static values of a part's graph, an element each value; those of kernels as if not yet packed.
  // Errors: kInvalidProgram naming the value, kOutOfMemory.
  Result<std::vector<StaticTensor>> add(const DelegatePart& part, const Graph& graph);
  // To be called when a runtime of the part was made: its kernels are packed now, so what they were packed from is
  // dropped.
  void finish_part();
  // To be called when all runtimes were made: from then on a weight that is not found is an error and is not packed.
  // Errors: kOutOfMemory if something could not be kept, kFileUnreadable for what was written and cannot be mapped.
  Status finish();
  // What went wrong with the cache or the writer, so that a load that failed may succeed without them; empty: nothing.
  const std::string& cache_failure() const { return cache_failure_; }
  // Errors: kFileChanged if a page of the file of packed weights could not be read since it was mapped.
  Status check_readable() const;

  WeightsCacheProvider* provider() { return &provider_; }
  uint64_t private_bytes() const { return private_bytes_; }
  uint64_t file_backed_bytes() const { return file_backed_bytes_; }

 private:
  // Weight, form, rows and offset; for kernels also what else is packed with them: dtype of the input, key of the bias.
  using Key = std::string;
  struct Entry {
    StaticTensor tensor;
    std::vector<Pages> pages;
    bool is_kernel = false;
    bool is_packed = false;
    uint64_t max_packed_bytes = 0;
  };
  // Packed weights: private pages, or in a file.
  struct Space {
    const std::byte* data = nullptr;
    std::optional<Pages> pages{};
    uint64_t bytes = 0;
    std::optional<PackedName> name{};  // of what is to be written
    std::optional<uint64_t> offset{};  // in the file that is written
  };
  struct PackedKey {
    uint32_t seed;
    const void* kernel;
    const void* bias;
    auto operator<=>(const PackedKey&) const = default;
  };

  Result<StaticTensor> find_or_make(const DelegatePart& part, const GraphValue& value, const Key& key, bool is_kernel);
  Status make(const DelegatePart& part, const GraphValue& value, Entry* entry);
  Status make_vector(const DelegatePart& part, const GraphValue& value, const Key& key, Entry* entry);
  Result<std::byte*> allocate(Entry* entry, Size bytes);
  size_t look_up_in_cache(const PackedKey& key);
  // Where in the file it begins; nothing if nothing is written, or no more.
  std::optional<uint64_t> write(const PackedName& name, std::span<const std::byte> bytes);
  void write_spaces();
  Status use_written();

  static size_t look_up(void* self, const WeightsCacheKey* key);
  static void* reserve_space(void* self, size_t bytes);
  static size_t insert(void* self, const WeightsCacheKey* key, void* data, size_t bytes);

  std::optional<PackedCache> cache_;
  std::optional<PackedCacheWriter> writer_;
  std::optional<CacheMapping> written_;
  std::string cache_failure_;
  bool is_written_whole_ = true;
  std::map<Key, Entry> entries_;
  std::map<const void*, std::pair<const Key, Entry>*> entry_at_;  // by the address that XNNPACK knows
  std::map<PackedKey, size_t> packed_;                            // to an index of `spaces_`
  std::deque<Space> spaces_;
  bool is_finished_ = false;
  bool has_failed_ = false;
  uint64_t private_bytes_ = 0;
  uint64_t file_backed_bytes_ = 0;
  WeightsCacheProvider provider_;
};

}  // namespace mote::xnnpack
