// Keys and values of one session: float16, for each state and head a slot a position. Calls of every length read the
// same memory, and what they add is written behind it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backends/qnn/graph.h"
#include "runner/program/delegate.h"

namespace mote::qnn {

using States = std::map<int32_t, StateSizes>;

class Caches {
 public:
  explicit Caches(States states) : states_(std::move(states)) {
    for (const auto& [state, sizes] : states_) slots_[state];
  }

  // Memory for all positions, once. Throws std::bad_alloc.
  void reserve();
  int64_t positions() const;  // that all states hold; a call that failed may have left more in some
  int64_t positions_of(int32_t state) const { return slots_.at(state).positions; }
  uint16_t* keys(int32_t state) { return slots_.at(state).keys.data(); }
  uint16_t* values(int32_t state) { return slots_.at(state).values.data(); }
  uint64_t held_bytes() const;
  bool has_state(int32_t state) const { return states_.contains(state); }

  bool seek(int64_t position);
  // Puts rows [heads, tokens, width] behind the first `position`, as far as there are slots.
  void append(int32_t state, int64_t position, int64_t tokens, const uint16_t* keys, const uint16_t* values);

  // Rows [positions, heads, width] of the first positions. Errors: kUnsupportedBackend for more than there are slots.
  void read(int32_t state, int64_t positions, std::span<std::byte> keys, std::span<std::byte> values) const;
  Status write(int32_t state, int64_t positions, std::span<const std::byte> keys, std::span<const std::byte> values);

  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const;
  Status restore(const DelegateSnapshot& snapshot);
  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const;

 private:
  struct Slots {
    std::vector<uint16_t> keys, values;  // [heads, capacity, width]
    int64_t positions = 0;
  };
  size_t bytes_of_position() const;

  States states_;
  std::map<int32_t, Slots> slots_;
};

}  // namespace mote::qnn
