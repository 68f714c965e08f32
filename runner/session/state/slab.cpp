#include "runner/session/state/slab.h"

#include <new>

#include "base/memory.h"

namespace mote {

Slab Slab::allocate(size_t bytes) {
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
  return slab;
}

Slab Slab::share() const {
  Slab other;
  other.block_ = block_;
  if (block_ != nullptr) block_->num_holders.fetch_add(1, std::memory_order_relaxed);
  return other;
}

void Slab::release() {
  if (block_ == nullptr || block_->num_holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  release_pages(block_->data, block_->bytes);
  delete block_;
}

}  // namespace mote
