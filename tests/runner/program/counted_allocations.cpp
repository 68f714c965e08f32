#include "tests/runner/program/counted_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
std::atomic<bool> is_armed{false};
std::atomic<int64_t> left{0};  // allocations before the one that fails
bool fails_on = false;

// By posix_memalign, which nothing else calls: malloc is counted by itself.
void* allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  ++allocations;
  void* memory = nullptr;
  if (mote::test::refuses_allocation() || posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0)
    return nullptr;
  return memory;
}

#if defined(_WIN32)
void release(void* memory) { ::_aligned_free(memory); }
#else
void release(void* memory) { std::free(memory); }
#endif

void* allocate_or_throw(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}
}  // namespace

namespace mote::test {

int64_t num_allocations() { return allocations; }

FailingAllocation::FailingAllocation(int64_t index, bool and_all_after) {
  left = index - 1;
  fails_on = and_all_after;
  is_armed = true;
}

bool FailingAllocation::stop() {
  is_armed = false;
  return left < 0;
}

bool refuses_allocation() {
  if (!is_armed) return false;
  const int64_t before = left--;
  return before == 0 || (before < 0 && fails_on);
}

}  // namespace mote::test

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
