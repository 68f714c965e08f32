#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "backends/xnnpack/packed_cache.h"
#include "base/crc32.h"
#include "base/log.h"
#include "kernels/machine/cpu_features.h"

namespace mote::xnnpack {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr size_t kMaxNameBytes = 64;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = 1;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = 2;
#else
constexpr uint32_t kArchitecture = 0x100 + sizeof(void*);
#endif

struct LibraryFile {
  uint64_t bytes = 0;  // 0: it cannot be read
  uint32_t crc32 = 0;
};

LibraryFile read_library(const Api& api) {
  LibraryFile library;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(api.initialize), &info) == 0 || info.dli_fname == nullptr) return library;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(info.dli_fname, "rb"), std::fclose);
  if (file == nullptr) return library;
  std::vector<std::byte> buffer(kReadBytes);
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0;) {
    library.crc32 = crc32({buffer.data(), count}, library.crc32);
    library.bytes += count;
  }
  return std::ferror(file.get()) != 0 ? LibraryFile{} : library;
}

// Every target of a model that has parts for XNNPACK has a file of its own. Its name comes from the model, where it
// may be anything.
std::string target_name(const std::string& target) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+'; };
  if (target.size() <= kMaxNameBytes && !target.empty() && std::ranges::all_of(target, is_plain)) return target;
  return format("xnnpack+%08x", crc32(std::as_bytes(std::span(target))));
}

}  // namespace

std::optional<CachePlace> CachePlace::find(const Api& api, const DelegateSource& source) {
  const char* wanted = std::getenv("MOTE_XNNPACK_CACHE");
  if (source.cache_prefix.empty() || (wanted != nullptr && std::string_view(wanted) == "0")) return std::nullopt;
  static const LibraryFile library = read_library(api);  // one a process
  if (library.bytes == 0) {
    MOTE_LOG_LINE(kInfo, "xnnpack: the file of the library cannot be read, so packed weights are not kept");
    return std::nullopt;
  }
  CachePlace place;
  place.path = source.cache_prefix + "." + target_name(source.target) + "-cache";
  place.identity = {source.file_bytes,          library.bytes, source.program_crc32, library.crc32,
                    detect_cpu_features().bits, kArchitecture};
  place.model_owner = source.file_owner;
  place.guards_pages = source.guards_pages;
  return place;
}

}  // namespace mote::xnnpack
