#include "base/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/open_file.h"
#include "base/size.h"

namespace mote {
namespace {

// In memory, gone when it is closed; -1: none.
int nameless_file() {
#if defined(__linux__)
  return static_cast<int>(::syscall(SYS_memfd_create, "mote", 1u /* MFD_CLOEXEC */));
#else
  const std::string name = "/mote-" + std::to_string(::getpid());
  const int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file >= 0) ::shm_unlink(name.c_str());
  return file;
#endif
}

}  // namespace

void AlignedFree::operator()(std::byte* memory) const { std::free(memory); }

AlignedMemory allocate_aligned(uint64_t bytes) {
  const Size rounded = (Size(bytes) + 1).align_up(kMemoryAlignment);
  if (!rounded.valid()) return nullptr;
  void* memory = nullptr;  // std::aligned_alloc is not in every Android
  if (::posix_memalign(&memory, kMemoryAlignment, rounded.unsigned_value()) != 0) return nullptr;
  return AlignedMemory(static_cast<std::byte*>(memory));
}

std::byte* reserve_pages(size_t bytes) {
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : static_cast<std::byte*>(block);
}

std::byte* reserve_addresses(size_t bytes) {
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? nullptr : static_cast<std::byte*>(block);
}

bool repeat_pages(std::byte* block, size_t bytes, size_t ring) {
  const FileDescriptor memory(nameless_file());
  if (memory.get() < 0 || ::ftruncate(memory.get(), static_cast<off_t>(ring)) != 0) return false;
  for (size_t done = 0; done < bytes; done += ring) {
    void* mapped = ::mmap(block + done, std::min(ring, bytes - done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          memory.get(), 0);
    if (mapped != MAP_FAILED) continue;
    if (done > 0)
      (void)::mmap(block, done, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return false;
  }
  prefer_large_pages(block, bytes);
  return true;
}

void release_pages(std::byte* block, size_t bytes) { ::munmap(block, bytes); }

// Mapping anew gives the memory back at once on every system.
void drop_pages(std::byte* block, size_t bytes) {
  (void)::mmap(block, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void prefer_large_pages([[maybe_unused]] std::byte* block, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
  (void)::madvise(block, bytes, MADV_HUGEPAGE);
#endif
}

void merge_pages([[maybe_unused]] std::byte* block, [[maybe_unused]] size_t bytes) {
  prefer_large_pages(block, bytes);  // which an older system does in time
#if defined(__linux__)
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which glibc names from 2.37 on
  (void)::madvise(block, bytes, kCollapse);
#endif
}

int64_t physical_memory_bytes() { return int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE); }

int64_t last_cache_bytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  return std::max<int64_t>({0, ::sysconf(_SC_LEVEL2_CACHE_SIZE), ::sysconf(_SC_LEVEL3_CACHE_SIZE)});
#else
  return 0;
#endif
}

Result<MappedPages> MappedPages::map(const std::string& name, int descriptor, int64_t offset, size_t bytes) {
  const int64_t begin = offset % ::sysconf(_SC_PAGESIZE);
  const size_t length = static_cast<size_t>(begin) + bytes;
  void* mapped = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, static_cast<off_t>(offset - begin));
  MOTE_REQUIRE(mapped != MAP_FAILED, Code::kFileUnreadable, "%s: cannot be mapped (%zu bytes): %s", name.c_str(),
               length, std::strerror(errno));
  MappedPages result;
  result.pages_ = {static_cast<std::byte*>(mapped), length};
  prefer_large_pages(result.pages_.data(), length);
  result.part_ = result.pages_.subspan(static_cast<size_t>(begin));
  return result;
}

// The second takes them from this process also where the first is not known or the file belongs to another user.
void MappedPages::evict() const {
#if defined(__linux__)
  constexpr int kPageOut = 21;  // MADV_PAGEOUT, which old headers lack
  (void)::madvise(pages_.data(), pages_.size(), kPageOut);
#endif
  (void)::madvise(pages_.data(), pages_.size(), MADV_DONTNEED);
}

MappedPages::~MappedPages() {
  if (!pages_.empty()) ::munmap(pages_.data(), pages_.size());
}

}  // namespace mote
