// The states of one session: where it is, and their rows for copies and for other backends.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/assets/opened_asset.h"
#include "runner/program/delegate.h"

namespace mote::assets {

// Thread safety: one thread at a time.
class SequenceStates {
 public:
  explicit SequenceStates(std::shared_ptr<OpenedAsset> asset);

  int64_t position() const { return position_; }
  bool has_recurrent() const { return has_recurrent_; }
  uint64_t held_bytes() const;

  // The runtime's states, made if there are none; nullptr where functions have none.
  Result<std::shared_ptr<AssetStates>> held();
  // After a call that brought the states to `position`.
  void moved_to(int64_t position) { position_ = position; }
  // What they hold is not to be believed: nobody reads them until they are at 0 again.
  void distrust() { is_trusted_ = false; }
  bool seek(int64_t position);

  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const;
  Status restore(const DelegateSnapshot& snapshot);
  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const;

  std::optional<DType> cache_dtype(int32_t state) const;
  Status read_cache(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const;
  Status write_cache(int32_t state, int64_t positions, std::span<const std::byte> keys,
                     std::span<const std::byte> values);
  bool holds_recurrent(int32_t state) const { return is_trusted_ && port_of(state, StatePart::state).has_value(); }
  Status read_recurrent(int32_t state, std::span<std::byte> elements) const;
  Status write_recurrent(int32_t state, int64_t positions, std::span<const std::byte> elements);

 private:
  std::optional<size_t> port_of(int32_t state, StatePart part) const;
  Status read_rows(int32_t state, StatePart part, std::span<std::byte> rows) const;
  Status write_rows(int32_t state, StatePart part, int64_t positions, std::span<const std::byte> rows);

  std::shared_ptr<OpenedAsset> asset_;
  std::shared_ptr<AssetStates> states_;
  int64_t position_ = 0;
  bool has_recurrent_ = false, is_trusted_ = true;
};

}  // namespace mote::assets
