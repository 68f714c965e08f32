// What adapters (LoRA) add to the products of weights, as ops see it: thin matrices by weight, mixed for each sequence.
// docs/adapters.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "kernels/kernel.h"
#include "kernels/state.h"
#include "kernels/tensor.h"

namespace mote {

// For rows [first_row, first_row + rows) of a weight: y += scale * B (A x), and first y *= 1 + gain if there are gains.
struct LowRank {
  const std::byte* a = nullptr;  // [rank, columns]
  const std::byte* b = nullptr;  // [rank, rows]: B transposed
  const float* gains = nullptr;  // [rows]; nullptr: none
  DType dtype = DType::kFloat32;
  int64_t rank = 0;
  int64_t columns = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
  float scale = 1.0f;
  const Kernel* down = nullptr;  // multiplies by A; chosen by AdapterWeights::add
  const Kernel* up = nullptr;    // multiplies by B
};

// The matrices of one adapter by the weight that they change. Does not own them. Thread safety: immutable once made.
class AdapterWeights {
 public:
  // data: where the weight's elements begin, which names it. Errors: those of select_kernel.
  Status add(const void* data, LowRank part);

  // In the order of their rows. Empty: the adapter leaves the weight as it is.
  std::span<const LowRank> parts_of(const void* data) const {
    const auto found = parts_.find(data);
    return found == parts_.end() ? std::span<const LowRank>() : std::span<const LowRank>(found->second);
  }
  // The largest sum of ranks over the parts of a weight, the most parts of one, and the most columns of one.
  int64_t max_rank() const { return max_rank_; }
  int64_t max_parts() const { return max_parts_; }
  int64_t max_columns() const { return max_columns_; }

 private:
  std::unordered_map<const void*, std::vector<LowRank>> parts_;
  int64_t max_rank_ = 0;
  int64_t max_parts_ = 0;
  int64_t max_columns_ = 0;
};

// One part of one adapter in a call: what it adds to some rows of the products.
struct AdapterItem {
  const LowRank* part = nullptr;
  float* inner = nullptr;  // [count, rank]: weight * scale * A x of each row
  int64_t first = 0;       // row of activations
  int64_t count = 0;
  float weight = 1.0f;
};

// Up to kAdapterBlock rows of activations of one sequence, and its items.
struct AdapterBlock {
  int64_t first = 0;
  int64_t count = 0;
  int64_t first_item = 0;
  int64_t num_items = 0;
};
inline constexpr int64_t kAdapterBlock = 16;

// Working memory for the adapters of a call whose ops have at most a row for each token; 0: no sequence has one.
size_t adapter_memory_bytes(std::span<const SequenceStates> sequences, int num_threads);

}  // namespace mote
