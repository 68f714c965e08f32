#include "backends/vulkan/caches.h"

#include <algorithm>

#include "backends/vulkan/plan.h"
#include "base/size.h"

namespace mote::vulkan {
namespace {

// The rows of each buffer one after the other.
class CacheSnapshot final : public DelegateSnapshot {
 public:
  CacheSnapshot(int64_t positions, std::vector<std::byte> bytes) : positions_(positions), bytes_(std::move(bytes)) {}
  uint64_t held_bytes() const override { return bytes_.size(); }
  Result<std::vector<std::byte>> to_bytes() const override { return bytes_; }
  int64_t positions() const { return positions_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  int64_t positions_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Caches::Caches(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphCache> shapes, int64_t context_length,
               Histories histories)
    : context_(std::move(context)),
      shapes_(std::move(shapes)),
      context_length_(context_length),
      histories_(std::move(histories)) {
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
  return bytes + histories_.held_bytes();
}

bool Caches::seek(int64_t position) {
  if (position < 0 || position > positions_ || !histories_.hold(position)) return false;
  positions_ = position;
  histories_.seek(position);
  return true;
}

Status Caches::reserve(int64_t positions) {
  MOTE_RETURN_IF_ERROR(histories_.reserve());
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

Result<std::shared_ptr<const DelegateSnapshot>> Caches::snapshot() const {
  const auto count = static_cast<uint64_t>(positions_);
  std::vector<std::byte> bytes(count * position_bytes() + (count > 0 ? histories_.snapshot_bytes() : 0));
  size_t at = 0;
  for (size_t i = 0; i < buffers_.size() && count > 0; ++i) {
    const std::span to(bytes.data() + at, count * row_bytes(i));
    MOTE_RETURN_IF_ERROR(context_->read(buffers_[i], 0, to));
    at += to.size();
  }
  if (count > 0) MOTE_RETURN_IF_ERROR(histories_.read(std::span(bytes).subspan(at)));
  return std::shared_ptr<const DelegateSnapshot>(std::make_shared<CacheSnapshot>(positions_, std::move(bytes)));
}

Status Caches::restore(const DelegateSnapshot& snapshot) {
  const auto& from = static_cast<const CacheSnapshot&>(snapshot);
  positions_ = 0;
  histories_.seek(0);
  MOTE_RETURN_IF_ERROR(reserve(from.positions()));
  size_t at = 0;
  for (size_t i = 0; i < buffers_.size() && from.positions() > 0; ++i) {
    const std::span rows(from.bytes().data() + at, static_cast<size_t>(from.positions()) * row_bytes(i));
    MOTE_RETURN_IF_ERROR(context_->write(buffers_[i], 0, rows));
    at += rows.size();
  }
  if (from.positions() > 0) {
    MOTE_RETURN_IF_ERROR(histories_.write(std::span(from.bytes()).subspan(at), from.positions()));
  }
  positions_ = from.positions();
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

Result<std::shared_ptr<const DelegateSnapshot>> Caches::import(std::span<const std::byte> bytes) const {
  const uint64_t row = position_bytes(), fixed = bytes.empty() ? 0 : histories_.snapshot_bytes();
  MOTE_REQUIRE(row > 0 && bytes.size() >= fixed && (bytes.size() - fixed) % row == 0, Code::kInvalidSession,
               "%zu bytes of keys and values: must be a multiple of %llu, and %llu of other states", bytes.size(),
               static_cast<unsigned long long>(row), static_cast<unsigned long long>(fixed));
  return std::shared_ptr<const DelegateSnapshot>(std::make_shared<CacheSnapshot>(
      static_cast<int64_t>((bytes.size() - fixed) / row), std::vector<std::byte>(bytes.begin(), bytes.end())));
}

}  // namespace mote::vulkan
