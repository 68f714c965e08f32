#include "backends/vulkan/recurrences.h"

#include <algorithm>

#include "base/size.h"

namespace mote::vulkan {
namespace {

constexpr int64_t kSlotsOfRows = 32;  // rows that another slot is kept for
constexpr int64_t kSmallestBuffer = 16;

}  // namespace

// Rows get half of the room at most, and all of a buffer is bound at once.
Recurrences::Recurrences(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphRecurrence> shapes,
                         RewindRoom room)
    : context_(std::move(context)), shapes_(std::move(shapes)) {
  uint64_t of_rows = 1, of_states = 1, largest_row = 1, largest_state = 1;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    of_rows += row_bytes(i);
    of_states += state_bytes(i);
    largest_row = std::max(largest_row, row_bytes(i));
    largest_state = std::max(largest_state, state_bytes(i));
  }
  const uint64_t range = context_->limits().maxStorageBufferRange;
  const uint64_t rows = std::min({room.bytes / 2 / of_rows, range / largest_row, uint64_t{1} << 20});
  num_rows_ = room.tokens == 0 ? 0 : std::min(room.tokens + kSlotsOfRows, static_cast<int64_t>(rows));
  const uint64_t others = std::min(room.bytes / 2 / of_states, range / largest_state);
  num_slots_ = 2 + std::min(num_rows_ == 0 ? 0 : num_rows_ / kSlotsOfRows + 1, static_cast<int64_t>(others));
  num_slots_ = std::max<int64_t>(2, std::min(num_slots_, static_cast<int64_t>(range / largest_state)));
  for (size_t i = 0; i < shapes_.size(); ++i) states_.push_back({StateSlots(num_slots_, num_rows_)});
}

Status Recurrences::reserve() {
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    if (state.slots.handle() != VK_NULL_HANDLE) continue;
    const Size bytes = Size(num_slots_) * Size(static_cast<int64_t>(state_bytes(i)));
    MOTE_REQUIRE(bytes.at_most(Size(context_->limits().maxStorageBufferRange)), Code::kOutOfMemory,
                 "a recurrent state takes %llu bytes: %s binds at most %u bytes of two",
                 static_cast<unsigned long long>(state_bytes(i)), context_->device_name().c_str(),
                 context_->limits().maxStorageBufferRange);
    const Size rows = Size(num_rows_) * Size(static_cast<int64_t>(row_bytes(i))) + kSmallestBuffer;
    MOTE_ASSIGN(gpu::GpuBuffer made, gpu::GpuBuffer::make(context_, bytes.unsigned_value(), gpu::Place::device));
    MOTE_ASSIGN(state.rows, gpu::GpuBuffer::make(context_, rows.unsigned_value(), gpu::Place::device));
    state.slots = std::move(made);
  }
  return {};
}

int64_t Recurrences::nearest(int64_t to) const {
  for (const State& state : states_) to = std::min(to, state.held.nearest(to));
  return to;
}

void Recurrences::seek(int64_t position) {
  for (State& state : states_) state.held.seek(position);
}

uint64_t Recurrences::held_bytes() const {
  uint64_t bytes = 0;
  for (const State& state : states_) bytes += state.slots.bytes() + state.rows.bytes();
  return bytes;
}

size_t Recurrences::index_of(int32_t state) const {
  const auto found = std::ranges::find(shapes_, state, &GraphRecurrence::state);
  return found == shapes_.end() ? SIZE_MAX : static_cast<size_t>(found - shapes_.begin());
}

uint64_t Recurrences::snapshot_bytes(int64_t num_rows) const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < shapes_.size(); ++i) bytes += state_bytes(i) + static_cast<uint64_t>(num_rows) * row_bytes(i);
  return bytes;
}

template <typename Move>
Status Recurrences::each_piece(const StateSlots& held, int64_t num_rows, int64_t from, int64_t to, const Move& move) {
  while (from < to) {
    const int64_t row = held.ring_row(from), count = std::min(to - from, num_rows - row);
    MOTE_RETURN_IF_ERROR(move(static_cast<uint64_t>(row), static_cast<uint64_t>(count)));
    from += count;
  }
  return {};
}

Status Recurrences::read(std::span<std::byte> to) const {
  for (size_t i = 0; i < states_.size(); ++i) {
    const StateSlots& held = states_[i].held;
    const StateSlots::Base base = held.base();
    MOTE_REQUIRE(base.position >= 0 && base.position == this->base() && held.next() == states_[0].held.next(),
                 Code::kInternal, "recurrent states that are at different positions");
    MOTE_RETURN_IF_ERROR(read_state(i, to.first(state_bytes(i))));
    to = to.subspan(state_bytes(i));
    MOTE_RETURN_IF_ERROR(each_piece(held, num_rows_, base.position, held.next(), [&](uint64_t row, uint64_t count) {
      const std::span part = to.first(count * row_bytes(i));
      to = to.subspan(part.size());
      return context_->read(states_[i].rows, row * row_bytes(i), part);
    }));
  }
  return {};
}

Status Recurrences::write(std::span<const std::byte> from, int64_t base, int64_t position) {
  MOTE_RETURN_IF_ERROR(reserve());
  for (size_t i = 0; i < states_.size(); ++i) {
    StateSlots& held = states_[i].held;
    MOTE_REQUIRE(held.adopt(base, position), Code::kUnsupportedBackend,
                 "a recurrent state that %lld rows lead to: the session keeps %lld",
                 static_cast<long long>(position - base), static_cast<long long>(num_rows_));
    MOTE_RETURN_IF_ERROR(context_->write(states_[i].slots, 0, from.first(state_bytes(i))));
    from = from.subspan(state_bytes(i));
    MOTE_RETURN_IF_ERROR(each_piece(held, num_rows_, base, position, [&](uint64_t row, uint64_t count) {
      const std::span part = from.first(count * row_bytes(i));
      from = from.subspan(part.size());
      return context_->write(states_[i].rows, row * row_bytes(i), part);
    }));
  }
  return {};
}

bool Recurrences::is_settled(size_t index) const {
  const StateSlots& held = states_[index].held;
  return held.base().position == held.next() && states_[index].slots.handle() != VK_NULL_HANDLE;
}

// Of the base.
Status Recurrences::read_state(size_t index, std::span<std::byte> to) const {
  const StateSlots::Base base = states_[index].held.base();
  MOTE_REQUIRE(base.position >= 0 && to.size() == state_bytes(index), Code::kInternal,
               "a recurrent state of %llu bytes", static_cast<unsigned long long>(state_bytes(index)));
  if (base.slot != SlotPlan::kZero) return context_->read(states_[index].slots, base.slot * state_bytes(index), to);
  std::ranges::fill(to, std::byte{0});
  return {};
}

Status Recurrences::write_state(size_t index, int64_t position, std::span<const std::byte> from) {
  MOTE_RETURN_IF_ERROR(reserve());
  MOTE_REQUIRE(from.size() == state_bytes(index) && states_[index].held.adopt(position, position), Code::kInternal,
               "a recurrent state of %llu bytes", static_cast<unsigned long long>(state_bytes(index)));
  return context_->write(states_[index].slots, 0, from);
}

}  // namespace mote::vulkan
