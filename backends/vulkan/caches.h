// Keys and values of one session on the device: float16, for each state a row a position, all heads one after the
// other; and with them its histories.
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/graph.h"
#include "backends/vulkan/histories.h"
#include "runner/program/delegate.h"

namespace mote::vulkan {

class Caches {
 public:
  Caches(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphCache> shapes, int64_t context_length,
         Histories histories);

  // Room for the first `positions`; what is held stays. Errors: kOutOfMemory, kContextFull; nothing has changed then.
  Status reserve(int64_t positions);
  int64_t capacity() const { return capacity_; }  // a multiple of kSplitPositions
  int64_t positions() const { return positions_; }
  void set_positions(int64_t positions) { positions_ = positions; }
  bool seek(int64_t position);
  Histories& histories() { return histories_; }
  const Histories& histories() const { return histories_; }
  const gpu::GpuBuffer& keys(size_t cache) const { return buffers_[2 * cache]; }
  const gpu::GpuBuffer& values(size_t cache) const { return buffers_[2 * cache + 1]; }
  uint64_t held_bytes() const;

  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const;
  Status restore(const DelegateSnapshot& snapshot);
  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const;

  bool has_state(int32_t state) const { return index_of(state) < shapes_.size(); }
  // Rows of the first positions.
  Status read(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const;
  Status write(int32_t state, int64_t positions, std::span<const std::byte> keys, std::span<const std::byte> values);

 private:
  size_t index_of(int32_t state) const;
  // Of a position in buffers_[index].
  uint64_t row_bytes(size_t index) const;
  uint64_t position_bytes() const;

  std::shared_ptr<const gpu::GpuContext> context_;
  std::vector<GraphCache> shapes_;
  int64_t context_length_;
  Histories histories_;
  std::vector<gpu::GpuBuffer> buffers_;  // keys and values of each
  int64_t capacity_ = 0, positions_ = 0;
};

}  // namespace mote::vulkan
