#include "runner/session/state/slab.h"

#include <new>

#include "base/memory.h"

namespace mote {

Slab Slab::allocate(size_t bytes, bool is_filled) {
  Slab slab;
  std::byte* data = reserve_pages(bytes);
  if (data == nullptr) return slab;
  slab.block_ = new (std::nothrow) Block;
  if (slab.block_ == nullptr) {
    release_pages(data, bytes);
    return slab;
  }
  slab.block_->data = data;
  slab.block_->bytes = bytes;
  if (is_filled) prefer_large_pages(data, bytes);
  slab.block_->is_merged = is_filled;
  return slab;
}

Slab Slab::share() const {
  Slab other;
  other.block_ = block_;
  if (block_ != nullptr) block_->num_holders.fetch_add(1, std::memory_order_relaxed);
  return other;
}

void Slab::merge() const {
  if (!block_->is_merged.exchange(true, std::memory_order_relaxed)) merge_pages(block_->data, block_->bytes);
}

void Slab::release() {
  if (block_ == nullptr || block_->num_holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  release_pages(block_->data, block_->bytes);
  delete block_;
}

}  // namespace mote
