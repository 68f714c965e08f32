// Memory that kernels read, and files seen as memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace mote {

constexpr size_t kMemoryAlignment = 64;

struct AlignedFree {
  void operator()(std::byte* memory) const;
};
using AlignedMemory = std::unique_ptr<std::byte, AlignedFree>;

// At a multiple of 64, and at least a byte more than `bytes`; nullptr if the system has none.
AlignedMemory allocate_aligned(uint64_t bytes);

// Zeroed memory, aligned to 64 bytes, whose pages are made when they are first touched; nullptr: refused.
std::byte* reserve_pages(size_t bytes);
void release_pages(std::byte* block, size_t bytes);
// Addresses for such pages, whether or not there is memory for all of them; nullptr: refused. Ends with release_pages.
std::byte* reserve_addresses(size_t bytes);
// Makes pages of reserve_addresses repetitions of their first `ring` bytes, in memory of their own; all are multiples
// of a page. False, and nothing changes: the system cannot.
bool repeat_pages(std::byte* block, size_t bytes, size_t ring);
// Gives the memory of such pages back: they stay readable and hold zeros, or what they held if the system refuses.
void drop_pages(std::byte* block, size_t bytes);
// Asks for large ones before they are touched, of files too: a core of a virtual machine reads them in two thirds of
// the time. Whether there are some is the system's business.
void prefer_large_pages(std::byte* block, size_t bytes);
// Moves what was touched of pages of reserve_pages into large ones at once, where the system can (Linux from 6.1 on).
void merge_pages(std::byte* block, size_t bytes);

// Pages that end with their holder.
struct ReleasePages {
  size_t bytes = 0;
  void operator()(std::byte* block) const { release_pages(block, bytes); }
};
using ReservedPages = std::unique_ptr<std::byte[], ReleasePages>;

// Zeroed memory in large pages where the system has them; without memory if it refuses.
inline ReservedPages reserve_large_pages(size_t bytes) {
  ReservedPages pages(reserve_pages(bytes), ReleasePages{bytes});
  if (pages != nullptr) prefer_large_pages(pages.get(), bytes);
  return pages;
}

// Of the machine.
int64_t physical_memory_bytes();
// The largest cache between a core and memory; 0: the system does not tell.
int64_t last_cache_bytes();

// Read-only pages of a file. Lifetime: spans live as long as the object that gave them, moves included.
class MappedPages {
 public:
  MappedPages() = default;  // none
  // From the page on in which the part begins. name: for messages. Errors: kFileUnreadable.
  static Result<MappedPages> map(const std::string& name, int descriptor, int64_t offset, size_t bytes);
  MappedPages(MappedPages&& other) noexcept
      : pages_(std::exchange(other.pages_, {})), part_(std::exchange(other.part_, {})) {}
  MappedPages& operator=(MappedPages&& other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(part_, other.part_);
    return *this;
  }
  ~MappedPages();

  // Gives their memory back to the system; who reads them next has them read from the file again.
  void evict() const;

  bool empty() const { return pages_.empty(); }
  std::span<const std::byte> part() const { return part_; }
  std::span<const std::byte> pages() const { return pages_; }  // from the first one on, to the end of the part

 private:
  std::span<std::byte> pages_;
  std::span<const std::byte> part_;
};

}  // namespace mote
