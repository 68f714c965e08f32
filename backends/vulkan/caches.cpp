#include "backends/vulkan/caches.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/plan.h"
#include "base/size.h"

namespace mote::vulkan {
namespace {

// Its beginning, then the rows of each buffer one after the other, histories and recurrences.
class CacheSnapshot final : public DelegateSnapshot {
 public:
  CacheSnapshot(SnapshotStart start, std::vector<std::byte> bytes) : start_(start), bytes_(std::move(bytes)) {}
  uint64_t held_bytes() const override { return bytes_.size(); }
  Result<std::vector<std::byte>> to_bytes() const override { return bytes_; }
  const SnapshotStart& start() const { return start_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  SnapshotStart start_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Caches::Caches(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphCache> shapes, int64_t context_length,
               Histories histories, Recurrences recurrences)
    : context_(std::move(context)),
      shapes_(std::move(shapes)),
      context_length_(context_length),
      histories_(std::move(histories)),
      recurrences_(std::move(recurrences)) {
  buffers_.resize(2 * shapes_.size());
}

uint64_t Caches::row_bytes(size_t index) const {
  const GraphCache& shape = shapes_[index / 2];
  const int64_t width = index % 2 == 0 ? shape.head_dim : shape.value_head_dim;
  return static_cast<uint64_t>(int64_t{shape.num_heads} * width * 2);
}

uint64_t Caches::position_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < buffers_.size(); ++i) bytes += row_bytes(i);
  return bytes;
}

uint64_t Caches::held_bytes() const {
  uint64_t bytes = 0;
  for (const gpu::GpuBuffer& buffer : buffers_) bytes += buffer.bytes();
  return bytes + histories_.held_bytes() + recurrences_.held_bytes();
}

int64_t Caches::nearest(int64_t to) const {
  to = std::min(to, positions_);
  while (true) {
    const int64_t near = histories_.nearest(recurrences_.nearest(to));
    if (near == to) return to;
    to = near;
  }
}

bool Caches::seek(int64_t position) {
  if (position < 0 || position > positions_ || nearest(position) != position) return false;
  positions_ = position;
  histories_.seek(position);
  recurrences_.seek(position);
  return true;
}

Status Caches::reserve(int64_t positions) {
  MOTE_RETURN_IF_ERROR(histories_.reserve());
  MOTE_RETURN_IF_ERROR(recurrences_.reserve());
  if (positions <= capacity_) return {};
  MOTE_REQUIRE(context_length_ == 0 || positions <= context_length_, Code::kContextFull,
               "position %lld does not fit: the context holds %lld", static_cast<long long>(positions - 1),
               static_cast<long long>(context_length_));
  int64_t wanted = std::max(positions, 2 * capacity_);
  if (context_length_ > 0) wanted = std::min(wanted, context_length_);
  const Size capacity = Size(wanted).align_up(kSplitPositions);
  const Size all = capacity * Size(position_bytes());
  MOTE_REQUIRE(all.valid(), Code::kOutOfMemory, "%lld positions: take more bytes than there are",
               static_cast<long long>(wanted));
  MOTE_RETURN_IF_ERROR(context_->require_free(
      all.unsigned_value(), format("%lld positions of keys and values", static_cast<long long>(wanted))));
  std::vector<gpu::GpuBuffer> grown;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Size bytes = capacity * Size(row_bytes(i));
    MOTE_REQUIRE(bytes.at_most(Size(context_->limits().maxStorageBufferRange)), Code::kOutOfMemory,
                 "%lld positions: %s binds at most %u bytes of a cache", static_cast<long long>(wanted),
                 context_->device_name().c_str(), context_->limits().maxStorageBufferRange);
    MOTE_ASSIGN(gpu::GpuBuffer buffer, gpu::GpuBuffer::make(context_, bytes.unsigned_value(), gpu::Place::device));
    if (positions_ > 0) {
      MOTE_RETURN_IF_ERROR(context_->copy(buffers_[i], buffer, static_cast<uint64_t>(positions_) * row_bytes(i)));
    }
    grown.push_back(std::move(buffer));
  }
  buffers_ = std::move(grown);
  capacity_ = capacity.value();
  return {};
}

uint64_t Caches::snapshot_bytes(const SnapshotStart& start) const {
  if (start.positions == 0) return 0;
  return static_cast<uint64_t>(start.positions) * position_bytes() + histories_.snapshot_bytes() +
         recurrences_.snapshot_bytes(recurrences_.empty() ? 0 : start.positions - start.base);
}

Result<std::shared_ptr<const DelegateSnapshot>> Caches::snapshot() const {
  const SnapshotStart start{positions_, recurrences_.base()};
  MOTE_REQUIRE(start.base >= 0, Code::kInternal, "the GPU holds no recurrent states of position %lld",
               static_cast<long long>(positions_));
  std::vector<std::byte> bytes(sizeof(start) + snapshot_bytes(start));
  std::memcpy(bytes.data(), &start, sizeof(start));
  std::span<std::byte> to = std::span(bytes).subspan(sizeof(start));
  const auto count = static_cast<uint64_t>(positions_);
  for (size_t i = 0; i < buffers_.size() && count > 0; ++i) {
    MOTE_RETURN_IF_ERROR(context_->read(buffers_[i], 0, to.first(count * row_bytes(i))));
    to = to.subspan(count * row_bytes(i));
  }
  if (count > 0) {
    MOTE_RETURN_IF_ERROR(histories_.read(to.first(histories_.snapshot_bytes())));
    MOTE_RETURN_IF_ERROR(recurrences_.read(to.subspan(histories_.snapshot_bytes())));
  }
  return std::shared_ptr<const DelegateSnapshot>(std::make_shared<CacheSnapshot>(start, std::move(bytes)));
}

Status Caches::restore(const DelegateSnapshot& snapshot) {
  const auto& from = static_cast<const CacheSnapshot&>(snapshot);
  const SnapshotStart start = from.start();
  const auto count = static_cast<uint64_t>(start.positions);
  positions_ = 0;
  histories_.seek(0);
  recurrences_.seek(0);
  MOTE_RETURN_IF_ERROR(reserve(start.positions));
  std::span<const std::byte> rest = std::span(from.bytes()).subspan(sizeof(start));
  for (size_t i = 0; i < buffers_.size() && count > 0; ++i) {
    MOTE_RETURN_IF_ERROR(context_->write(buffers_[i], 0, rest.first(count * row_bytes(i))));
    rest = rest.subspan(count * row_bytes(i));
  }
  if (count > 0) {
    MOTE_RETURN_IF_ERROR(histories_.write(rest.first(histories_.snapshot_bytes()), start.positions));
    const Status status = recurrences_.write(rest.subspan(histories_.snapshot_bytes()), start.base, start.positions);
    if (!status.ok()) {
      histories_.seek(0);
      recurrences_.seek(0);
      return status;
    }
  }
  positions_ = start.positions;
  return {};
}

size_t Caches::index_of(int32_t state) const {
  return static_cast<size_t>(std::ranges::find(shapes_, state, &GraphCache::state) - shapes_.begin());
}

Status Caches::read(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const {
  const size_t index = index_of(state);
  const auto held = static_cast<uint64_t>(positions_);
  MOTE_REQUIRE(index < shapes_.size() && keys.size() <= held * row_bytes(2 * index) &&
                   values.size() <= held * row_bytes(2 * index + 1),
               Code::kInternal, "state %d: the GPU holds %lld positions", state, static_cast<long long>(positions_));
  MOTE_RETURN_IF_ERROR(context_->read(buffers_[2 * index], 0, keys));
  return context_->read(buffers_[2 * index + 1], 0, values);
}

Status Caches::write(int32_t state, int64_t positions, std::span<const std::byte> keys,
                     std::span<const std::byte> values) {
  const size_t index = index_of(state);
  MOTE_REQUIRE(index < shapes_.size() && keys.size() == static_cast<uint64_t>(positions) * row_bytes(2 * index) &&
                   values.size() == static_cast<uint64_t>(positions) * row_bytes(2 * index + 1),
               Code::kInternal, "state %d: keys and values are not those of %lld positions", state,
               static_cast<long long>(positions));
  MOTE_RETURN_IF_ERROR(reserve(positions));
  MOTE_RETURN_IF_ERROR(context_->write(buffers_[2 * index], 0, keys));
  MOTE_RETURN_IF_ERROR(context_->write(buffers_[2 * index + 1], 0, values));
  positions_ = positions;
  return {};
}

// Both kinds of recurrent state are laid out as the CPU's.
Status Caches::read_recurrent(int32_t state, std::span<std::byte> elements) const {
  const size_t history = histories_.index_of(state), recurrence = recurrences_.index_of(state);
  if (history != SIZE_MAX && elements.size() == histories_.snapshot_bytes(history) &&
      histories_.ring(history).handle() != VK_NULL_HANDLE) {
    return histories_.read(history, elements);
  }
  MOTE_REQUIRE(recurrence != SIZE_MAX && recurrences_.is_settled(recurrence), Code::kUnsupportedBackend,
               "state %d: the GPU does not hold it as it is at position %lld", state,
               static_cast<long long>(positions_));
  return recurrences_.read_state(recurrence, elements);
}

Status Caches::write_recurrent(int32_t state, int64_t positions, std::span<const std::byte> elements) {
  const size_t history = histories_.index_of(state), recurrence = recurrences_.index_of(state);
  MOTE_RETURN_IF_ERROR(reserve(positions));
  if (history != SIZE_MAX && elements.size() == histories_.snapshot_bytes(history)) {
    MOTE_RETURN_IF_ERROR(histories_.write(history, elements, positions));
  } else {
    MOTE_REQUIRE(recurrence != SIZE_MAX, Code::kInternal, "state %d: is not of this delegate", state);
    MOTE_RETURN_IF_ERROR(recurrences_.write_state(recurrence, positions, elements));
  }
  positions_ = positions;
  return {};
}

Result<std::shared_ptr<const DelegateSnapshot>> Caches::import(std::span<const std::byte> bytes) const {
  SnapshotStart start;
  constexpr int64_t kMost = int64_t{1} << 31;
  if (bytes.size() >= sizeof(start)) std::memcpy(&start, bytes.data(), sizeof(start));
  const bool is_within = start.base >= 0 && start.base <= start.positions && start.positions < kMost;
  MOTE_REQUIRE(bytes.size() >= sizeof(start) && is_within && bytes.size() - sizeof(start) == snapshot_bytes(start),
               Code::kInvalidSession, "%zu bytes of states on a GPU: are not those of a session of this model",
               bytes.size());
  return std::shared_ptr<const DelegateSnapshot>(
      std::make_shared<CacheSnapshot>(start, std::vector<std::byte>(bytes.begin(), bytes.end())));
}

}  // namespace mote::vulkan
