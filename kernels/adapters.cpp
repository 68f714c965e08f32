#include "kernels/adapters.h"

#include <algorithm>

#include "base/memory.h"

namespace mote {
namespace {

// Bytes of an array in working memory, as kernels/support/scratch.h cuts it.
template <typename T>
size_t array_bytes(int64_t count) {
  return (static_cast<size_t>(count) * sizeof(T) + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace

Status AdapterWeights::add(const void* data, LowRank part) {
  const WeightKind kind{part.dtype, 0, 0, {}};
  MOTE_ASSIGN(part.down, select_kernel("linear.dense", kind, 1));
  MOTE_ASSIGN(part.up, select_kernel("linear.low_rank", kind, 1));
  std::vector<LowRank>& parts = parts_[data];
  const auto place = std::ranges::upper_bound(parts, part.first_row, {}, &LowRank::first_row);
  parts.insert(place, part);
  int64_t rank = 0;
  for (const LowRank& each : parts) rank += each.rank;
  max_rank_ = std::max(max_rank_, rank);
  max_parts_ = std::max(max_parts_, static_cast<int64_t>(parts.size()));
  max_columns_ = std::max(max_columns_, part.columns);
  return {};
}

size_t adapter_memory_bytes(std::span<const SequenceStates> sequences, int num_threads) {
  int64_t items = 0, blocks = 0, columns = 0;
  size_t inner = 0;
  for (const SequenceStates& sequence : sequences) {
    if (sequence.adapters.empty()) continue;
    blocks += sequence.tokens / kAdapterBlock + 1;
    for (const AdapterUse& use : sequence.adapters) {
      items += use.adapter->max_parts();
      columns = std::max(columns, use.adapter->max_columns());
      inner += array_bytes<float>(sequence.tokens * use.adapter->max_rank()) +
               static_cast<size_t>(use.adapter->max_parts()) * kMemoryAlignment;
    }
  }
  if (items == 0) return 0;
  return array_bytes<AdapterItem>(items) + array_bytes<AdapterBlock>(blocks) + inner +
         static_cast<size_t>(num_threads) * array_bytes<float>(kAdapterBlock * columns);
}

}  // namespace mote
