// What our own code allocates otherwise than by operator new. Linked with --wrap for each of these.
#include <cerrno>
#include <cstddef>

#include <sys/mman.h>

#include "tests/runner/program/counted_allocations.h"

using mote::test::refuses_allocation;

extern "C" {

void* __real_malloc(size_t bytes);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
void* __real_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);

void* __wrap_malloc(size_t bytes) { return refuses_allocation() ? nullptr : __real_malloc(bytes); }
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  return refuses_allocation() ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}
void* __wrap_realloc(void* memory, size_t bytes) {
  return refuses_allocation() ? nullptr : __real_realloc(memory, bytes);
}
void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (!refuses_allocation()) return __real_mmap(address, bytes, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

}  // extern "C"
