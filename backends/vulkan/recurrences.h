// Recurrent states of one session that are matrices, on the device: for each its slots, and a ring of what its op
// recorded of the latest tokens (state_slots.h).
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/graph.h"
#include "backends/vulkan/state_slots.h"

namespace mote::vulkan {

// What a session may keep to go back.
struct RewindRoom {
  int64_t tokens = 0;
  uint64_t bytes = 0;
};

class Recurrences {
 public:
  Recurrences(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphRecurrence> shapes, RewindRoom room);

  Status reserve();  // Errors: kOutOfMemory
  bool empty() const { return shapes_.empty(); }
  int64_t num_rows() const { return num_rows_; }  // of a ring
  const gpu::GpuBuffer& slots(size_t index) const { return states_[index].slots; }
  const gpu::GpuBuffer& rows(size_t index) const { return states_[index].rows; }
  StateSlots& state(size_t index) { return states_[index].held; }
  const StateSlots& state(size_t index) const { return states_[index].held; }
  int64_t nearest(int64_t to) const;
  void seek(int64_t position);
  uint64_t held_bytes() const;
  // The index of a state of the program; SIZE_MAX: it is none of these.
  size_t index_of(int32_t state) const;

  // What a copy of all states is: their elements at `base`, and the rows that lead on from there.
  int64_t base() const { return empty() ? 0 : states_[0].held.base().position; }
  uint64_t snapshot_bytes(int64_t num_rows) const;
  Status read(std::span<std::byte> to) const;
  Status write(std::span<const std::byte> from, int64_t base, int64_t position);

  // The elements of one state, where no rows are needed for them.
  bool is_settled(size_t index) const;
  Status read_state(size_t index, std::span<std::byte> to) const;
  Status write_state(size_t index, int64_t position, std::span<const std::byte> from);

 private:
  struct State {
    StateSlots held;
    gpu::GpuBuffer slots{}, rows{};
  };
  uint64_t state_bytes(size_t index) const { return static_cast<uint64_t>(shapes_[index].floats()) * sizeof(float); }
  uint64_t row_bytes(size_t index) const {
    return static_cast<uint64_t>(shapes_[index].recorded_floats()) * sizeof(float);
  }
  // move(row of the ring, count) for the rows of positions, which may go round.
  template <typename Move>
  static Status each_piece(const StateSlots& held, int64_t num_rows, int64_t from, int64_t to, const Move& move);

  std::shared_ptr<const gpu::GpuContext> context_;
  std::vector<GraphRecurrence> shapes_;
  int64_t num_rows_ = 0, num_slots_ = 2;
  std::vector<State> states_;
};

}  // namespace mote::vulkan
