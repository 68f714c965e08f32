#include "runner/templates/arena.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace mote::jinja {
namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kFirstBlock = size_t{8} << 10;
constexpr size_t kLargestBlock = size_t{256} << 10;
constexpr size_t kOwnBlock = size_t{32} << 10;  // what is larger gets a block of its own, which can grow in place

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Arena::~Arena() {
  for (const Block& block : blocks_) std::free(block.data);
}

void* Arena::allocate_block(size_t bytes) {
  budget_.take_memory(bytes);
  blocks_.emplace_back();
  blocks_.back() = {static_cast<char*>(std::malloc(bytes)), bytes};
  if (blocks_.back().data == nullptr) throw std::bad_alloc();
  return blocks_.back().data;
}

void* Arena::allocate(size_t bytes) {
  if (bytes > budget_.limits().max_memory_bytes) budget_.take_memory(bytes);
  bytes = aligned(std::max<size_t>(bytes, 1));
  if (bytes >= kOwnBlock) return allocate_block(bytes);
  if (static_cast<size_t>(end_ - cursor_) < bytes) {
    const size_t block_bytes = std::min(kFirstBlock << std::min<size_t>(blocks_.size(), 8), kLargestBlock);
    cursor_ = static_cast<char*>(allocate_block(std::max(block_bytes, bytes)));
    end_ = cursor_ + blocks_.back().bytes;
  }
  void* memory = cursor_;
  cursor_ += bytes;
  return memory;
}

void* Arena::grow(void* memory, size_t old_bytes, size_t new_bytes) {
  if (memory == nullptr) return allocate(new_bytes);
  if (old_bytes >= kOwnBlock) {
    const auto block = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const Block& b) { return b.data == memory; });
    if (block != blocks_.rend()) {
      new_bytes = aligned(new_bytes);
      budget_.take_memory(new_bytes - block->bytes);
      void* moved = std::realloc(memory, new_bytes);
      if (moved == nullptr) throw std::bad_alloc();
      *block = {static_cast<char*>(moved), new_bytes};
      return moved;
    }
  }
  char* old_end = static_cast<char*>(memory) + aligned(std::max<size_t>(old_bytes, 1));
  const size_t more = aligned(new_bytes) - aligned(std::max<size_t>(old_bytes, 1));
  if (old_end == cursor_ && static_cast<size_t>(end_ - cursor_) >= more) {
    cursor_ += more;
    return memory;
  }
  void* moved = allocate(new_bytes);
  if (old_bytes > 0) std::memcpy(moved, memory, old_bytes);
  return moved;
}

}  // namespace mote::jinja
