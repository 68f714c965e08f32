// Memory that several holders read and that one of them may write while it is the only one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace mote {

// A holder of zeroed memory whose pages cost nothing until they are touched. A slab begins with one holder; share()
// adds one, a holder's end takes one away, and the last one's end frees the memory. Copying is a call so that no copy
// made in passing takes the right to write. Thread safety: each holder on its own, on any thread.
class Slab {
 public:
  Slab() = default;
  Slab(Slab&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Slab& operator=(Slab other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Slab() { release(); }

  // Without memory if the system refuses. is_filled: all of it is written at once, so large pages waste nothing.
  static Slab allocate(size_t bytes, bool is_filled = false);

  // Another holder of the same memory; without memory if this is.
  Slab share() const;

  explicit operator bool() const { return block_ != nullptr; }
  // All of it has been written: moves it into large pages, unless it lies in such.
  void merge() const;

  std::byte* data() const { return block_->data; }
  size_t bytes() const { return block_->bytes; }
  // Whether this holder is the only one, and so may write. Only share() on this very holder can end that.
  bool is_writable() const { return block_->num_holders.load(std::memory_order_acquire) == 1; }

 private:
  struct Block {
    std::atomic<int64_t> num_holders{1};
    std::atomic<bool> is_merged{false};
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  void release();

  Block* block_ = nullptr;
};

}  // namespace mote
