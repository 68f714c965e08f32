#include "backends/assets/sequence_states.h"

#include <algorithm>
#include <cstring>

#include "kernels/support/float_bits.h"

namespace mote::assets {
namespace {

// The elements of each state at a position, in the order of the asset's ports.
class Snapshot final : public DelegateSnapshot {
 public:
  Snapshot(int64_t position, std::vector<Elements> elements) : position_(position), elements_(std::move(elements)) {}

  int64_t position() const { return position_; }
  const std::vector<Elements>& elements() const { return elements_; }
  uint64_t held_bytes() const override {
    uint64_t bytes = 0;
    for (const Elements& each : elements_) bytes += each.size();
    return bytes;
  }
  // The position, then the elements.
  Result<std::vector<std::byte>> to_bytes() const override {
    std::vector<std::byte> bytes(sizeof(position_));
    std::memcpy(bytes.data(), &position_, sizeof(position_));
    for (const Elements& each : elements_) bytes.insert(bytes.end(), each.begin(), each.end());
    return bytes;
  }

 private:
  int64_t position_;
  std::vector<Elements> elements_;
};

// Calls visit(offset among [heads, positions, width], offset among [positions, heads, width], bytes) for each row.
template <typename Visit> void each_row(const StatePort& port, int64_t positions, const Visit& visit) {
  const auto heads = static_cast<size_t>(port.port.shape[1]), count = static_cast<size_t>(positions);
  const auto row = static_cast<size_t>(port.port.shape[3] * dtype_bytes(port.port.dtype));
  for (size_t head = 0; head < heads; ++head) {
    for (size_t position = 0; position < count; ++position)
      visit((head * count + position) * row, (position * heads + head) * row, row);
  }
}

int64_t elements_in(const StatePort& port) { return port.port.num_elements(); }

}  // namespace

SequenceStates::SequenceStates(std::shared_ptr<OpenedAsset> asset) : asset_(std::move(asset)) {
  has_recurrent_ = std::ranges::any_of(asset_->ports(), [](const StatePort& port) { return !port.is_cache(); });
}

uint64_t SequenceStates::held_bytes() const {
  uint64_t bytes = 0;
  for (const StatePort& port : asset_->ports()) bytes += states_ == nullptr ? 0 : port.port.num_bytes();
  return bytes;
}

Result<std::shared_ptr<AssetStates>> SequenceStates::held() {
  if (states_ == nullptr && !asset_->ports().empty()) { MOTE_ASSIGN(states_, asset_->make_states()); }
  return states_;
}

// What lies behind a position in a cache is written before it is seen; a recurrent state only begins anew.
bool SequenceStates::seek(int64_t position) {
  if (position < 0 || position > position_) return false;
  if (has_recurrent_ && position != 0 && position != position_) return false;
  if (position == 0 && (has_recurrent_ || !is_trusted_)) states_ = nullptr;
  if (position == 0) is_trusted_ = true;
  position_ = position;
  return true;
}

Result<std::shared_ptr<const DelegateSnapshot>> SequenceStates::snapshot() const {
  if (!is_trusted_ || asset_->hangs()) return std::shared_ptr<const DelegateSnapshot>();
  std::vector<Elements> elements;
  for (size_t i = 0; position_ > 0 && i < asset_->ports().size(); ++i) {
    Result<Elements> read = asset_->read(states_, i, position_);
    if (!read.ok()) return std::shared_ptr<const DelegateSnapshot>();
    elements.push_back(*std::move(read));
  }
  return std::shared_ptr<const DelegateSnapshot>(std::make_shared<Snapshot>(position_, std::move(elements)));
}

Status SequenceStates::restore(const DelegateSnapshot& snapshot) {
  const auto& from = static_cast<const Snapshot&>(snapshot);
  (void)seek(0);
  if (from.position() == 0) return {};
  MOTE_ASSIGN(const auto states, held());
  for (size_t i = 0; i < from.elements().size(); ++i)
    MOTE_RETURN_IF_ERROR(asset_->write(states, i, from.position(), from.elements()[i]));
  position_ = from.position();
  return {};
}

Result<std::shared_ptr<const DelegateSnapshot>> SequenceStates::import(std::span<const std::byte> bytes) const {
  const auto invalid = [](const char* what) {
    return Status(Code::kInvalidSession, format("states of an asset: %s", what));
  };
  int64_t position = 0;
  if (bytes.size() < sizeof(position)) return invalid("end early");
  std::memcpy(&position, bytes.data(), sizeof(position));
  bytes = bytes.subspan(sizeof(position));
  const int64_t most = asset_->functions().front().context_length;
  if (position < 0 || position > most) return invalid("are at a position that the asset has not");
  std::vector<Elements> elements;
  for (size_t i = 0; position > 0 && i < asset_->ports().size(); ++i) {
    const size_t count = asset_->ports()[i].bytes_of(position);
    if (bytes.size() < count) return invalid("end early");
    elements.emplace_back(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
    bytes = bytes.subspan(count);
  }
  if (!bytes.empty()) return invalid("are longer than they should be");
  return std::shared_ptr<const DelegateSnapshot>(std::make_shared<Snapshot>(position, std::move(elements)));
}

std::optional<size_t> SequenceStates::port_of(int32_t state, StatePart part) const {
  const std::vector<StatePort>& ports = asset_->ports();
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].state == state && ports[i].part == part) return i;
  }
  return std::nullopt;
}

std::optional<DType> SequenceStates::cache_dtype(int32_t state) const {
  const std::optional<size_t> keys = port_of(state, StatePart::keys);
  if (!keys || !is_trusted_ || asset_->hangs()) return std::nullopt;
  return asset_->ports()[*keys].port.dtype;
}

Status SequenceStates::read_rows(int32_t state, StatePart part, std::span<std::byte> rows) const {
  const std::optional<size_t> index = port_of(state, part);
  const size_t wanted = index ? asset_->ports()[*index].bytes_of(position_) : 0;
  MOTE_REQUIRE(rows.size() == wanted, Code::kUnsupportedBackend, "state %d of the asset has other sizes", state);
  if (rows.empty()) return {};
  MOTE_ASSIGN(const Elements elements, asset_->read(states_, *index, position_));
  each_row(asset_->ports()[*index], position_,
           [&](size_t from, size_t to, size_t bytes) { std::memcpy(rows.data() + to, elements.data() + from, bytes); });
  return {};
}

Status SequenceStates::write_rows(int32_t state, StatePart part, int64_t positions, std::span<const std::byte> rows) {
  const std::optional<size_t> index = port_of(state, part);
  const size_t wanted = index ? asset_->ports()[*index].bytes_of(positions) : 0;
  MOTE_REQUIRE(rows.size() == wanted, Code::kUnsupportedBackend, "state %d of the asset has other sizes", state);
  if (rows.empty()) return {};
  Elements elements(rows.size());
  each_row(asset_->ports()[*index], positions,
           [&](size_t to, size_t from, size_t bytes) { std::memcpy(elements.data() + to, rows.data() + from, bytes); });
  MOTE_ASSIGN(const auto states, held());
  return asset_->write(states, *index, positions, std::move(elements));
}

Status SequenceStates::read_cache(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const {
  MOTE_RETURN_IF_ERROR(read_rows(state, StatePart::keys, keys));
  return read_rows(state, StatePart::values, values);
}

Status SequenceStates::write_cache(int32_t state, int64_t positions, std::span<const std::byte> keys,
                                   std::span<const std::byte> values) {
  MOTE_REQUIRE(positions <= asset_->functions().front().context_length, Code::kUnsupportedBackend,
               "%lld positions: the asset holds %lld", static_cast<long long>(positions),
               static_cast<long long>(asset_->functions().front().context_length));
  MOTE_RETURN_IF_ERROR(write_rows(state, StatePart::keys, positions, keys));
  MOTE_RETURN_IF_ERROR(write_rows(state, StatePart::values, positions, values));
  position_ = positions;
  return {};
}

Status SequenceStates::read_recurrent(int32_t state, std::span<std::byte> elements) const {
  const std::optional<size_t> whole = port_of(state, StatePart::state), rest = port_of(state, StatePart::rest);
  const bool fits =
      whole && elements.size() == static_cast<size_t>(elements_in(asset_->ports()[*whole])) * sizeof(float);
  MOTE_REQUIRE(fits && states_ != nullptr, Code::kUnsupportedBackend, "state %d is not held as it is there", state);
  const auto count = static_cast<int64_t>(elements.size() / sizeof(float));
  std::vector<float> sums(static_cast<size_t>(count)), lost(sums.size());
  MOTE_ASSIGN(const Elements first, asset_->read(states_, *whole, position_));
  to_float32(first.data(), asset_->ports()[*whole].port.dtype, count, sums.data());
  if (rest) {
    MOTE_ASSIGN(const Elements second, asset_->read(states_, *rest, position_));
    to_float32(second.data(), asset_->ports()[*rest].port.dtype, count, lost.data());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += lost[i] / kRestScale;
  }
  std::memcpy(elements.data(), sums.data(), elements.size());
  return {};
}

Status SequenceStates::write_recurrent(int32_t state, int64_t positions, std::span<const std::byte> elements) {
  const std::optional<size_t> whole = port_of(state, StatePart::state), rest = port_of(state, StatePart::rest);
  const bool fits =
      whole && elements.size() == static_cast<size_t>(elements_in(asset_->ports()[*whole])) * sizeof(float);
  MOTE_REQUIRE(fits, Code::kUnsupportedBackend, "state %d of the asset has other sizes", state);
  MOTE_ASSIGN(const auto states, held());
  if (asset_->ports()[*whole].port.dtype == DType::kFloat32) {
    MOTE_RETURN_IF_ERROR(asset_->write(states, *whole, positions, {elements.begin(), elements.end()}));
  } else {
    std::vector<float> sums(elements.size() / sizeof(float));
    std::memcpy(sums.data(), elements.data(), elements.size());
    Elements first(sums.size() * sizeof(uint16_t)), second(first.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      const uint16_t half = float32_to_float16(sums[i]);
      const uint16_t lost = float32_to_float16((sums[i] - float16_to_float32(half)) * kRestScale);
      std::memcpy(first.data() + i * sizeof(half), &half, sizeof(half));
      std::memcpy(second.data() + i * sizeof(lost), &lost, sizeof(lost));
    }
    MOTE_RETURN_IF_ERROR(asset_->write(states, *whole, positions, std::move(first)));
    if (rest) MOTE_RETURN_IF_ERROR(asset_->write(states, *rest, positions, std::move(second)));
  }
  position_ = positions;
  return {};
}

}  // namespace mote::assets
