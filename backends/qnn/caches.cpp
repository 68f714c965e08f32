#include "backends/qnn/caches.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace mote::qnn {
namespace {

constexpr size_t kHalf = sizeof(uint16_t);

// Rows [positions, heads, width] of each state, keys and then values.
class Snapshot final : public DelegateSnapshot {
 public:
  Snapshot(int64_t positions, std::vector<std::byte> bytes) : positions_(positions), bytes_(std::move(bytes)) {}
  int64_t positions() const { return positions_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  uint64_t held_bytes() const override { return bytes_.size(); }
  Result<std::vector<std::byte>> to_bytes() const override { return bytes_; }

 private:
  int64_t positions_;
  std::vector<std::byte> bytes_;
};

size_t key_bytes(const StateSizes& sizes) { return size_t{sizes.heads} * sizes.key_width * kHalf; }
size_t value_bytes(const StateSizes& sizes) { return size_t{sizes.heads} * sizes.value_width * kHalf; }

// Calls visit(slot's elements, place among rows [positions, heads, width] in bytes) for each row of slots.
template <typename Visit>
void each_row(const StateSizes& sizes, uint32_t width, int64_t positions, const Visit& visit) {
  for (int64_t position = 0; position < positions; ++position) {
    for (uint32_t head = 0; head < sizes.heads; ++head) {
      const size_t slot = (size_t{head} * sizes.capacity + static_cast<size_t>(position)) * width;
      const size_t row = (static_cast<size_t>(position) * sizes.heads + head) * width * kHalf;
      visit(slot, row, width * kHalf);
    }
  }
}

}  // namespace

void Caches::reserve() {
  for (auto& [state, slots] : slots_) {
    const StateSizes& sizes = states_.at(state);
    slots.keys.resize(size_t{sizes.heads} * sizes.capacity * sizes.key_width);
    slots.values.resize(size_t{sizes.heads} * sizes.capacity * sizes.value_width);
  }
}

int64_t Caches::positions() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& [state, slots] : slots_) least = std::min(least, slots.positions);
  return slots_.empty() ? 0 : least;
}

uint64_t Caches::held_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [state, slots] : slots_) bytes += (slots.keys.size() + slots.values.size()) * kHalf;
  return bytes;
}

bool Caches::seek(int64_t position) {
  if (position < 0 || position > positions()) return false;
  for (auto& [state, slots] : slots_) slots.positions = position;
  return true;
}

void Caches::append(int32_t state, int64_t position, int64_t tokens, const uint16_t* keys, const uint16_t* values) {
  const StateSizes& sizes = states_.at(state);
  Slots& slots = slots_.at(state);
  const int64_t kept = std::min(tokens, int64_t{sizes.capacity} - position);
  const auto copy = [&](std::vector<uint16_t>& to, const uint16_t* from, size_t width) {
    for (size_t head = 0; head < sizes.heads; ++head) {
      std::memcpy(to.data() + (head * sizes.capacity + static_cast<size_t>(position)) * width,
                  from + head * static_cast<size_t>(tokens) * width, static_cast<size_t>(kept) * width * kHalf);
    }
  };
  copy(slots.keys, keys, sizes.key_width);
  copy(slots.values, values, sizes.value_width);
  slots.positions = position + kept;
}

void Caches::read(int32_t state, int64_t positions, std::span<std::byte> keys, std::span<std::byte> values) const {
  const StateSizes& sizes = states_.at(state);
  const Slots& slots = slots_.at(state);
  if (slots.keys.empty()) return;  // of no positions
  each_row(sizes, sizes.key_width, positions, [&](size_t slot, size_t row, size_t bytes) {
    std::memcpy(keys.data() + row, slots.keys.data() + slot, bytes);
  });
  each_row(sizes, sizes.value_width, positions, [&](size_t slot, size_t row, size_t bytes) {
    std::memcpy(values.data() + row, slots.values.data() + slot, bytes);
  });
}

Status Caches::write(int32_t state, int64_t positions, std::span<const std::byte> keys,
                     std::span<const std::byte> values) {
  const StateSizes& sizes = states_.at(state);
  MOTE_REQUIRE(positions <= sizes.capacity, Code::kUnsupportedBackend,
               "%lld positions: the file was exported for %u on QNN", static_cast<long long>(positions),
               sizes.capacity);
  reserve();
  Slots& slots = slots_.at(state);
  each_row(sizes, sizes.key_width, positions, [&](size_t slot, size_t row, size_t bytes) {
    std::memcpy(slots.keys.data() + slot, keys.data() + row, bytes);
  });
  each_row(sizes, sizes.value_width, positions, [&](size_t slot, size_t row, size_t bytes) {
    std::memcpy(slots.values.data() + slot, values.data() + row, bytes);
  });
  slots.positions = positions;
  return {};
}

size_t Caches::bytes_of_position() const {
  size_t bytes = 0;
  for (const auto& [state, sizes] : states_) bytes += key_bytes(sizes) + value_bytes(sizes);
  return bytes;
}

Result<std::shared_ptr<const DelegateSnapshot>> Caches::snapshot() const {
  const int64_t held = positions();
  std::vector<std::byte> bytes(static_cast<size_t>(held) * bytes_of_position());
  std::span<std::byte> rest(bytes);
  for (const auto& [state, sizes] : states_) {
    const size_t keys = static_cast<size_t>(held) * key_bytes(sizes),
                 values = static_cast<size_t>(held) * value_bytes(sizes);
    read(state, held, rest.first(keys), rest.subspan(keys, values));
    rest = rest.subspan(keys + values);
  }
  return std::shared_ptr<const DelegateSnapshot>(std::make_shared<Snapshot>(held, std::move(bytes)));
}

Status Caches::restore(const DelegateSnapshot& snapshot) {
  const auto& from = static_cast<const Snapshot&>(snapshot);
  std::span<const std::byte> rest = from.bytes();
  for (auto& [state, slots] : slots_) slots.positions = 0;
  for (const auto& [state, sizes] : states_) {
    const size_t keys = static_cast<size_t>(from.positions()) * key_bytes(sizes),
                 values = static_cast<size_t>(from.positions()) * value_bytes(sizes);
    MOTE_RETURN_IF_ERROR(write(state, from.positions(), rest.first(keys), rest.subspan(keys, values)));
    rest = rest.subspan(keys + values);
  }
  return {};
}

Result<std::shared_ptr<const DelegateSnapshot>> Caches::import(std::span<const std::byte> bytes) const {
  const size_t row = bytes_of_position();
  const auto invalid = [&] {
    return Status(
        Code::kInvalidSession,
        format("%zu bytes of keys and values: must be a multiple of %zu that fits the slots", bytes.size(), row));
  };
  if (row == 0 ? !bytes.empty() : bytes.size() % row != 0) return invalid();
  const int64_t positions = row == 0 ? 0 : static_cast<int64_t>(bytes.size() / row);
  for (const auto& [state, sizes] : states_) {
    if (positions > sizes.capacity) return invalid();
  }
  return std::shared_ptr<const DelegateSnapshot>(
      std::make_shared<Snapshot>(positions, std::vector<std::byte>(bytes.begin(), bytes.end())));
}

}  // namespace mote::qnn
