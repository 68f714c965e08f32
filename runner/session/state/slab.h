// Memory that several owners read and that one of them may write once the others are gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace mote {

// A counted reference to zeroed memory whose pages cost nothing until they are touched. Thread safety: as a shared_ptr;
// the memory may be written by whoever holds the only reference.
class Slab {
 public:
  Slab() = default;
  Slab(const Slab& other) : block_(other.block_) {
    if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Slab(Slab&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Slab& operator=(Slab other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Slab() { release(); }

  // Without memory if the system refuses.
  static Slab allocate(size_t bytes);

  explicit operator bool() const { return block_ != nullptr; }
  std::byte* data() const { return block_->data; }
  size_t bytes() const { return block_->bytes; }
  // Nobody can make it shared again but through this reference, so that `false` stays true.
  bool is_shared() const { return block_->references.load(std::memory_order_acquire) > 1; }

 private:
  struct Block {
    std::atomic<int64_t> references{1};
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  void release();

  Block* block_ = nullptr;
};

// Zeroed memory, aligned to 64 bytes, whose pages are made when they are first touched; nullptr: refused.
std::byte* reserve_pages(size_t bytes);
void release_pages(std::byte* block, size_t bytes);

}  // namespace mote
