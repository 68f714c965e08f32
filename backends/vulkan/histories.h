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
  // spare_rows: beside those that a token sees; at least the tokens of a call
  Histories(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphHistory> shapes, int64_t spare_rows);

  Status reserve();  // Errors: kOutOfMemory
  bool empty() const { return shapes_.empty(); }
  const gpu::GpuBuffer& ring(size_t index) const { return rings_[index].buffer; }
  int64_t next(size_t index) const { return rings_[index].next; }
  int64_t spare_rows() const { return spare_rows_; }
  // A call overwrites the oldest rows from its beginning, and has added its own when it has succeeded.
  void begin(size_t index, int64_t tokens);
  void end(size_t index, int64_t tokens) { rings_[index].next += tokens; }
  // The last of the first `to` positions before which the rows are there.
  int64_t nearest(int64_t to) const;
  void seek(int64_t position);
  uint64_t held_bytes() const;

  // The rows before the next position, oldest first, one state after the other.
  uint64_t snapshot_bytes() const;
  Status read(std::span<std::byte> to) const;
  Status write(std::span<const std::byte> from, int64_t position);
  // Of one state.
  Status read(size_t index, std::span<std::byte> to) const;
  Status write(size_t index, std::span<const std::byte> from, int64_t position);
  uint64_t snapshot_bytes(size_t index) const { return static_cast<uint64_t>(shapes_[index].rows) * row_bytes(index); }
  // The index of a state of the program; SIZE_MAX: it is none of these.
  size_t index_of(int32_t state) const;

 private:
  struct Ring {
    gpu::GpuBuffer buffer{};
    int64_t next = 0;    // position of the row to come
    int64_t oldest = 0;  // from which on the session can go on
  };

  uint64_t row_bytes(size_t index) const { return static_cast<uint64_t>(shapes_[index].columns) * sizeof(float); }
  int64_t rows(size_t index) const { return shapes_[index].rows + spare_rows_; }
  // move(offset in the ring, offset in the rows, bytes) for each row that a state keeps.
  template <typename Move>
  Status each_row(size_t index, const Move& move) const;

  std::shared_ptr<const gpu::GpuContext> context_;
  std::vector<GraphHistory> shapes_;
  int64_t spare_rows_;
  std::vector<Ring> rings_;
};

}  // namespace mote::vulkan
