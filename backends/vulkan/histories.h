// The latest rows that went into recurrent states of one session, on the device: for each state a ring of float32 rows,
// the row of position p in place p modulo its rows, so that a session can go back to any position of its latest call.
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/graph.h"

namespace mote::vulkan {

class Histories {
 public:
  // max_tokens: of a call
  Histories(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphHistory> shapes, int64_t max_tokens);

  Status reserve();  // Errors: kOutOfMemory
  bool empty() const { return shapes_.empty(); }
  const gpu::GpuBuffer& ring(size_t index) const { return rings_[index].buffer; }
  int64_t next(size_t index) const { return rings_[index].next; }
  int64_t max_tokens() const { return max_tokens_; }
  void advance(size_t index, int64_t tokens);
  // Whether the rows before a position are there.
  bool hold(int64_t position) const;
  void seek(int64_t position);
  uint64_t held_bytes() const;

  // The rows before the next position, oldest first, one state after the other.
  uint64_t snapshot_bytes() const;
  Status read(std::span<std::byte> to) const;
  Status write(std::span<const std::byte> from, int64_t position);

 private:
  struct Ring {
    gpu::GpuBuffer buffer{};
    int64_t next = 0;    // position of the row to come
    int64_t oldest = 0;  // from which on the session can go on
  };

  uint64_t row_bytes(size_t index) const { return static_cast<uint64_t>(shapes_[index].columns) * sizeof(float); }
  int64_t rows(size_t index) const { return shapes_[index].rows + max_tokens_; }
  // move(offset in the ring, offset in the rows, bytes) for each row that a state keeps.
  template <typename Move>
  Status each_row(size_t index, const Move& move) const;

  std::shared_ptr<const gpu::GpuContext> context_;
  std::vector<GraphHistory> shapes_;
  int64_t max_tokens_;
  std::vector<Ring> rings_;
};

}  // namespace mote::vulkan
