// Keys and values of one session on the device: float16, for each state a row a position, all heads one after the
// other; and with them its other states.
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/graph.h"
#include "backends/vulkan/histories.h"
#include "backends/vulkan/recurrences.h"
#include "runner/program/delegate.h"

namespace mote::vulkan {

// How the bytes of a snapshot begin.
struct SnapshotStart {
  int64_t positions = 0;
  int64_t base = 0;  // at which recurrences are held, whose rows lead on from there
};

class Caches {
 public:
  Caches(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphCache> shapes, int64_t context_length,
         Histories histories, Recurrences recurrences);

  // Room for the first `positions`; what is held stays. Errors: kOutOfMemory, kContextFull; nothing has changed then.
  Status reserve(int64_t positions);
  int64_t capacity() const { return capacity_; }  // a multiple of kSplitPositions
  int64_t positions() const { return positions_; }
  void set_positions(int64_t positions) { positions_ = positions; }
  // The last of the first `to` positions that seek goes to.
  int64_t nearest(int64_t to) const;
  bool seek(int64_t position);
  Histories& histories() { return histories_; }
  const Histories& histories() const { return histories_; }
  Recurrences& recurrences() { return recurrences_; }
  const Recurrences& recurrences() const { return recurrences_; }
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
  // The elements of a recurrent state at the present position.
  Status read_recurrent(int32_t state, std::span<std::byte> elements) const;
  Status write_recurrent(int32_t state, int64_t positions, std::span<const std::byte> elements);

 private:
  size_t index_of(int32_t state) const;
  // Of a position in buffers_[index].
  uint64_t row_bytes(size_t index) const;
  uint64_t position_bytes() const;
  uint64_t snapshot_bytes(const SnapshotStart& start) const;

  std::shared_ptr<const gpu::GpuContext> context_;
  std::vector<GraphCache> shapes_;
  int64_t context_length_;
  Histories histories_;
  Recurrences recurrences_;
  std::vector<gpu::GpuBuffer> buffers_;  // keys and values of each
  int64_t capacity_ = 0, positions_ = 0;
};

}  // namespace mote::vulkan
