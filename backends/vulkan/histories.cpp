#include "backends/vulkan/histories.h"

#include <algorithm>

#include "base/size.h"

namespace mote::vulkan {

Histories::Histories(std::shared_ptr<const gpu::GpuContext> context, std::vector<GraphHistory> shapes,
                     int64_t max_tokens)
    : context_(std::move(context)), shapes_(std::move(shapes)), max_tokens_(max_tokens) {
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

void Histories::advance(size_t index, int64_t tokens) {
  Ring& ring = rings_[index];
  ring.next += tokens;
  ring.oldest = std::max(ring.oldest, ring.next - max_tokens_);
}

bool Histories::hold(int64_t position) const {
  return position == 0 || std::ranges::all_of(rings_, [&](const Ring& ring) {
           return position >= ring.oldest && position <= ring.next;
         });
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

uint64_t Histories::snapshot_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < shapes_.size(); ++i) bytes += static_cast<uint64_t>(shapes_[i].rows) * row_bytes(i);
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

Status Histories::read(std::span<std::byte> to) const {
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (rings_[i].buffer.handle() == VK_NULL_HANDLE) continue;
    MOTE_RETURN_IF_ERROR(each_row(i, [&](uint64_t place, uint64_t at) {
      return context_->read(rings_[i].buffer, place, to.subspan(at, row_bytes(i)));
    }));
    to = to.subspan(static_cast<size_t>(shapes_[i].rows) * row_bytes(i));
  }
  return {};
}

Status Histories::write(std::span<const std::byte> from, int64_t position) {
  MOTE_RETURN_IF_ERROR(reserve());
  for (size_t i = 0; i < rings_.size(); ++i) {
    rings_[i].next = rings_[i].oldest = position;
    MOTE_RETURN_IF_ERROR(each_row(i, [&](uint64_t place, uint64_t at) {
      return context_->write(rings_[i].buffer, place, from.subspan(at, row_bytes(i)));
    }));
    from = from.subspan(static_cast<size_t>(shapes_[i].rows) * row_bytes(i));
  }
  return {};
}

}  // namespace mote::vulkan
