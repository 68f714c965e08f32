// What the parts of a program share: static tensors, and weights packed by XNNPACK, each once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "backends/xnnpack/api.h"
#include "backends/xnnpack/graph.h"

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
  // From here on the pages read as zeros and take no memory.
  void drop();

 private:
  Pages(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  size_t bytes_;
};

// A static value of a graph, as XNNPACK gets it.
struct StaticTensor {
  const void* data = nullptr;
  const float* row_scales = nullptr;       // int8 forms
  const uint16_t* block_scales = nullptr;  // int4_blocks, before they are packed
  int64_t block_size = 0;
};

// XNNPACK finds packed weights by the address of what they were packed from. That address stays reserved, but its memory
// is given back once a runtime has packed it; runtimes that come later find the packed weights and never read it.
// Thread safety: `add`, `finish_part` and `finish` from one thread; afterwards all else from any.
class PackedWeights {
 public:
  PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // The static values of a part's graph, an element each value; those of kernels as if not yet packed.
  // Errors: kInvalidProgram naming the value, kOutOfMemory.
  Result<std::vector<StaticTensor>> add(const DelegatePart& part, const Graph& graph);
  // A runtime of the part exists, so its kernels are packed and their content is dropped.
  void finish_part();
  // Nothing is packed any more: what is not found is an error.
  // Errors: kOutOfMemory if something could not be kept.
  Status finish();

  WeightsCacheProvider* provider() { return &provider_; }
  uint64_t private_bytes() const { return private_bytes_; }

 private:
  // Weight, form, rows and offset; for kernels also what else is packed with them: dtype of the input, key of the bias.
  using Key = std::string;
  struct Entry {
    StaticTensor tensor;
    std::vector<Pages> pages;
    bool is_kernel = false;
    bool is_packed = false;
  };
  struct PackedKey {
    uint32_t seed;
    const void* kernel;
    const void* bias;
    auto operator<=>(const PackedKey&) const = default;
  };

  Result<StaticTensor> find_or_make(const DelegatePart& part, const GraphValue& value, const Key& key, bool is_kernel);
  Status make(const DelegatePart& part, const GraphValue& value, Entry* entry);
  Result<std::byte*> allocate(Entry* entry, Size bytes);

  static size_t look_up(void* self, const WeightsCacheKey* key);
  static void* reserve_space(void* self, size_t bytes);
  static size_t insert(void* self, const WeightsCacheKey* key, void* data, size_t bytes);

  std::map<Key, Entry> entries_;
  std::map<PackedKey, size_t> packed_;  // to an index of `spaces_`
  std::deque<Pages> spaces_;
  bool is_finished_ = false;
  bool has_failed_ = false;
  uint64_t private_bytes_ = 0;
  WeightsCacheProvider provider_;
};

}  // namespace mote::xnnpack
