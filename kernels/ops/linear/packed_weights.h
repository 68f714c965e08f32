// Weights in the layouts of kernels that cannot read the file's tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/ops/linear/kernels.h"

namespace mote {

// All rows of a weight [.., rows, columns], in blocks of 16 as in the file.
class PackedWeight {
 public:
  // The packed block of the block of tiles at this address.
  const std::byte* block_of(const std::byte* tiles) const {
    return blocks_.get() + (tiles - tiles_) / tile_block_bytes_ * block_bytes_;
  }

 private:
  friend class PackedWeights;
  const std::byte* tiles_ = nullptr;
  int64_t tile_block_bytes_ = 1;
  int64_t block_bytes_ = 0;
  AlignedMemory blocks_;
};

// Shared by a program's methods and sessions: each weight is packed once for each layout, when a method is first
// prepared. Thread safety: any thread. Lifetime: a PackedWeight lives as long as its PackedWeights.
class PackedWeights {
 public:
  // weight: tiles, its data in memory   Errors: kOutOfMemory.   Cost: reads the whole weight, the first time.
  Result<const PackedWeight*> pack(const Tensor& weight, const WeightPacking& packing);
  // Bytes of private memory that all packed weights take.
  uint64_t bytes() const;

 private:
  struct Key {
    const void* tiles;
    int64_t num_blocks;
    int64_t columns;
    const WeightPacking* packing;
    auto operator<=>(const Key&) const = default;
  };

  mutable std::mutex mutex_;
  std::map<Key, PackedWeight> weights_;
  uint64_t bytes_ = 0;
};

}  // namespace mote
