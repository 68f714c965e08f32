#include "runner/session/state/slab.h"

#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define MOTE_HAS_MMAP 1
#endif

namespace mote {

std::byte* reserve_pages(size_t bytes) {
#if defined(MOTE_HAS_MMAP)
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : static_cast<std::byte*>(block);
#else
  auto* block = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64}, std::nothrow));
  if (block != nullptr) std::memset(block, 0, bytes);
  return block;
#endif
}

void release_pages(std::byte* block, size_t bytes) {
#if defined(MOTE_HAS_MMAP)
  munmap(block, bytes);
#else
  (void)bytes;
  ::operator delete(block, std::align_val_t{64});
#endif
}

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
