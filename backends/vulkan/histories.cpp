#include "backends/vulkan/histories.h"

#include <algorithm>

#include "base/size.h"

namespace mote::vulkan {

Histories::Histories(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphHistory> shapes,
                     int64_t spare_rows)
    : context_(std::move(context)), shapes_(std::move(shapes)), spare_rows_(spare_rows) {
  rings_.resize(shapes_.size());
}

Status Histories::reserve() {
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (rings_[i].buffer.handle() != VK_NULL_HANDLE) continue;
    const Size bytes = Size(rows(i)) * Size(static_cast<int64_t>(row_bytes(i)));
    MOTE_REQUIRE(bytes.at_most(Size(context_->limits().maxStorageBufferRange)), Code::kOutOfMemory,
                 "%lld rows of a state: %s binds at most %u bytes", static_cast<long long>(rows(i)),
                 context_->device_name().c_str(), context_->limits().maxStorageBufferRange);
    MOTE_ASSIGN(rings_[i].buffer, gpu::GpuBuffer::make(context_, bytes.unsigned_value(), gpu::Place::device));
  }
  return {};
}

void Histories::begin(size_t index, int64_t tokens) {
  Ring& ring = rings_[index];
  ring.oldest = std::max(ring.oldest, ring.next + tokens - spare_rows_);
}

int64_t Histories::nearest(int64_t to) const {
  for (const Ring& ring : rings_) to = std::min(to, ring.next);
  return std::ranges::all_of(rings_, [&](const Ring& ring) { return to >= ring.oldest; }) ? to : 0;
}

void Histories::seek(int64_t position) {
  for (Ring& ring : rings_) {
    ring.next = position;
    ring.oldest = std::min(ring.oldest, position);
  }
}

uint64_t Histories::held_bytes() const {
  uint64_t bytes = 0;
  for (const Ring& ring : rings_) bytes += ring.buffer.bytes();
  return bytes;
}

size_t Histories::index_of(int32_t state) const {
  const auto found = std::ranges::find(shapes_, state, &GraphHistory::state);
  return found == shapes_.end() ? SIZE_MAX : static_cast<size_t>(found - shapes_.begin());
}

uint64_t Histories::snapshot_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < shapes_.size(); ++i) bytes += snapshot_bytes(i);
  return bytes;
}

template <typename Move>
Status Histories::each_row(size_t index, const Move& move) const {
  for (int64_t row = 0; row < shapes_[index].rows; ++row) {
    const int64_t position = rings_[index].next - shapes_[index].rows + row;
    if (position < 0) continue;  // read as 0
    const auto place = static_cast<uint64_t>(position % rows(index));
    MOTE_RETURN_IF_ERROR(move(place * row_bytes(index), static_cast<uint64_t>(row) * row_bytes(index)));
  }
  return {};
}

Status Histories::read(size_t index, std::span<std::byte> to) const {
  if (rings_[index].next < shapes_[index].rows) std::ranges::fill(to, std::byte{0});
  return each_row(index, [&](uint64_t place, uint64_t at) {
    return context_->read(rings_[index].buffer, place, to.subspan(at, row_bytes(index)));
  });
}

Status Histories::write(size_t index, std::span<const std::byte> from, int64_t position) {
  MOTE_RETURN_IF_ERROR(reserve());
  rings_[index].next = rings_[index].oldest = position;
  return each_row(index, [&](uint64_t place, uint64_t at) {
    return context_->write(rings_[index].buffer, place, from.subspan(at, row_bytes(index)));
  });
}

Status Histories::read(std::span<std::byte> to) const {
  for (size_t i = 0; i < rings_.size(); ++i) {
    MOTE_RETURN_IF_ERROR(read(i, to.first(snapshot_bytes(i))));
    to = to.subspan(snapshot_bytes(i));
  }
  return {};
}

Status Histories::write(std::span<const std::byte> from, int64_t position) {
  for (size_t i = 0; i < rings_.size(); ++i) {
    MOTE_RETURN_IF_ERROR(write(i, from.first(snapshot_bytes(i)), position));
    from = from.subspan(snapshot_bytes(i));
  }
  return {};
}

}  // namespace mote::vulkan
