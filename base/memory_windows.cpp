#include "base/memory.h"

#include <io.h>
#include <malloc.h>

#include <algorithm>

#include "base/size.h"
#include "base/windows.h"

namespace mote {

void AlignedFree::operator()(std::byte* memory) const { ::_aligned_free(memory); }

AlignedMemory allocate_aligned(uint64_t bytes) {
  const Size rounded = (Size(bytes) + 1).align_up(kMemoryAlignment);
  if (!rounded.valid()) return nullptr;
  return AlignedMemory(static_cast<std::byte*>(::_aligned_malloc(rounded.unsigned_value(), kMemoryAlignment)));
}

// Windows promises memory for all of them at once, but gives it page by page.
std::byte* reserve_pages(size_t bytes) {
  return static_cast<std::byte*>(::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

std::byte* reserve_addresses(size_t bytes) { return reserve_pages(bytes); }

bool repeat_pages(std::byte*, size_t, size_t) { return false; }

void release_pages(std::byte* block, size_t) { ::VirtualFree(block, 0, MEM_RELEASE); }

void drop_pages(std::byte* block, size_t bytes) {
  if (::VirtualFree(block, bytes, MEM_DECOMMIT) != 0) ::VirtualAlloc(block, bytes, MEM_COMMIT, PAGE_READONLY);
}

void prefer_large_pages(std::byte*, size_t) {}  // need a privilege that few users have

void merge_pages(std::byte*, size_t) {}

int64_t physical_memory_bytes() {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof memory;
  return ::GlobalMemoryStatusEx(&memory) != 0 ? static_cast<int64_t>(memory.ullTotalPhys) : 0;
}

int64_t last_cache_bytes() {
  int64_t largest = 0;
  windows::for_each_record(RelationCache, [&](const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX& record) {
    largest = std::max<int64_t>(largest, record.Cache.CacheSize);
  });
  return largest;
}

Result<MappedPages> MappedPages::map(const std::string& name, int descriptor, int64_t offset, size_t bytes) {
  SYSTEM_INFO system{};
  ::GetSystemInfo(&system);
  const int64_t begin = offset % system.dwAllocationGranularity, first = offset - begin;
  const size_t length = static_cast<size_t>(begin) + bytes;
  const auto refuse = [&] {
    return Status(Code::kFileUnreadable, format("%s: cannot be mapped (%zu bytes): %s", name.c_str(), length,
                                                windows::last_message().c_str()));
  };
  const auto file = reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
  const windows::Handle mapping(::CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr));
  if (!mapping) return refuse();
  void* mapped = ::MapViewOfFile(mapping.get(), FILE_MAP_READ, static_cast<DWORD>(static_cast<uint64_t>(first) >> 32),
                                 static_cast<DWORD>(first), length);
  if (mapped == nullptr) return refuse();
  MappedPages result;
  result.pages_ = {static_cast<std::byte*>(mapped), length};
  result.part_ = result.pages_.subspan(static_cast<size_t>(begin));
  return result;
}

// Pages that are not locked leave the working set.
void MappedPages::evict() const { (void)::VirtualUnlock(pages_.data(), pages_.size()); }

MappedPages::~MappedPages() {
  if (!pages_.empty()) ::UnmapViewOfFile(pages_.data());
}

}  // namespace mote
