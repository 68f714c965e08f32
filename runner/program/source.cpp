#include "runner/program/source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_lock.h"
#include "base/log.h"

namespace mote {
namespace {

constexpr size_t kChunkBytes = size_t{8} << 20;

// Calls work(done, count) for chunks of `bytes` one after the other.
template <typename Work>
Status in_chunks(size_t bytes, const Progress& progress, const Work& work) {
  for (size_t done = 0; done < bytes;) {
    MOTE_RETURN_IF_ERROR(report(progress, static_cast<double>(done) / static_cast<double>(bytes)));
    const size_t count = std::min(kChunkBytes, bytes - done);
    MOTE_RETURN_IF_ERROR(work(done, count));
    done += count;
  }
  return {};
}

// Whether kernels can read what begins there in place; if not, why it is read is said to whoever wonders where the
// memory goes.
bool is_aligned(const std::string& name, uint64_t begin) {
  if (begin % kMemoryAlignment == 0) return true;
  MOTE_LOG_LINE(kInfo, "%s: is read into memory: it begins at %llu, which is no multiple of %zu", name.c_str(),
                static_cast<unsigned long long>(begin), kMemoryAlignment);
  return false;
}

// The part with its length filled in. Errors: kInvalidArgument naming what is not within the file.
Result<FilePart> within(FilePart part, int64_t file_bytes) {
  MOTE_REQUIRE(part.offset >= 0 && part.offset <= file_bytes, Code::kInvalidArgument,
               "%s: offset = %lld: must be 0..%lld, the size of the file", part.name.c_str(),
               static_cast<long long>(part.offset), static_cast<long long>(file_bytes));
  const int64_t left = file_bytes - part.offset;
  MOTE_REQUIRE(part.length >= -1 && part.length <= left, Code::kInvalidArgument,
               "%s: length = %lld: must be at most %lld, what the file has from there on, or -1 for all of that",
               part.name.c_str(), static_cast<long long>(part.length), static_cast<long long>(left));
  if (part.length == -1) part.length = left;
  return part;
}

}  // namespace

Status read_exactly(const FilePart& part, size_t begin, std::span<std::byte> to) {
  for (size_t done = 0; done < to.size();) {
    const auto at = part.offset + static_cast<int64_t>(begin + done);
    const ReadBytes read = read_some_at(part.descriptor, at, to.subspan(done));
    MOTE_REQUIRE(read.count > 0, Code::kFileUnreadable, "%s: cannot be read at byte %zu: %s", part.name.c_str(),
                 begin + done, read.error.empty() ? "the file became shorter" : read.error.c_str());
    done += read.count;
  }
  return {};
}

Status SourceBytes::map_part(const FilePart& part, bool is_guarded) {
  MOTE_ASSIGN(mapping_, MappedPages::map(name_, part.descriptor, part.offset, static_cast<size_t>(part.length)));
  if (is_guarded) guard_ = PageGuard(mapping_.pages());
  bytes_ = mapping_.part();
  return {};
}

Status SourceBytes::allocate(size_t length) {
  copy_ = allocate_aligned(length);
  MOTE_REQUIRE(copy_ != nullptr, Code::kOutOfMemory, "%s: no memory for %zu bytes", name_.c_str(), length);
  bytes_ = {copy_.get(), length};
  return {};
}

Status SourceBytes::read_part(const FilePart& part, const Progress& progress) {
  const auto length = static_cast<size_t>(part.length);
  MOTE_RETURN_IF_ERROR(allocate(length));
  return in_chunks(length, progress,
                   [&](size_t begin, size_t count) { return read_exactly(part, begin, {copy_.get() + begin, count}); });
}

Status SourceBytes::take_part(const FilePart& source, LoadMode mode, const Progress& progress) {
  const std::optional<FileInfo> info = info_of(source.descriptor);
  MOTE_REQUIRE(info.has_value(), Code::kInvalidArgument, "%s: descriptor = %d: is not open", name_.c_str(),
               source.descriptor);
  MOTE_RETURN_IF_ERROR(require_regular(name_, info->kind));
  user_ = info->owner;
  MOTE_ASSIGN(const FilePart part, within(source, info->bytes));
  if (part.length == 0) return {};
  if (mode == LoadMode::kRead || !is_aligned(name_, static_cast<uint64_t>(part.offset)))
    return read_part(part, progress);
  MOTE_RETURN_IF_ERROR(map_part(part, mode == LoadMode::kMap));
  identity_ = info->identity;
  descriptor_ = duplicate(part.descriptor);
  MOTE_REQUIRE(descriptor_.get() >= 0, Code::kFileUnreadable, "%s: cannot be kept open: %s", name_.c_str(),
               std::strerror(errno));
  return {};
}

Status SourceBytes::take_path(const std::string& path, LoadMode mode, const Progress& progress) {
  has_path_ = true;
  MOTE_ASSIGN(const OpenedFile opened, open_regular_file(path));
  MOTE_RETURN_IF_ERROR(take_part({path, opened.descriptor.get()}, mode, progress));
  if (descriptor_.get() >= 0) note_use(descriptor_.get());
  return {};
}

Status SourceBytes::take_memory(const MemoryBytes& memory, LoadMode mode, const Progress& progress) {
  const std::span<const std::byte> bytes = memory.bytes;
  if (bytes.empty()) return {};
  if (mode != LoadMode::kRead && is_aligned(name_, reinterpret_cast<uintptr_t>(bytes.data()))) {
    bytes_ = bytes;
    memory_ = memory.owner;
    return {};
  }
  MOTE_RETURN_IF_ERROR(allocate(bytes.size()));
  return in_chunks(bytes.size(), progress, [&](size_t begin, size_t count) {
    std::memcpy(copy_.get() + begin, bytes.data() + begin, count);
    return Status();
  });
}

Result<SourceBytes> SourceBytes::take(const Source& source, LoadMode mode, const Progress& progress) {
  SourceBytes taken;
  Status status;
  if (const auto* path = std::get_if<std::string>(&source)) {
    taken.name_ = *path;
    status = taken.take_path(*path, mode, progress);
  } else if (const auto* part = std::get_if<FilePart>(&source)) {
    taken.name_ = part->name;
    status = taken.take_part(*part, mode, progress);
  } else {
    const auto& memory = std::get<MemoryBytes>(source);
    taken.name_ = memory.name;
    status = taken.take_memory(memory, mode, progress);
  }
  if (!status.ok()) return status;
  return taken;
}

Status SourceBytes::check_readable() const {
  MOTE_REQUIRE(!guard_.has_lost(), Code::kFileChanged,
               "%s: the file became shorter, or its disk failed, after it was loaded; load it again", name_.c_str());
  return {};
}

Status SourceBytes::check_unchanged() const {
  if (mapping_.empty()) return {};
  MOTE_RETURN_IF_ERROR(check_readable());
  const std::optional<FileInfo> info = info_of(descriptor_.get());
  MOTE_REQUIRE(info.has_value() && info->identity == identity_, Code::kFileChanged,
               "%s: the file was changed after it was loaded; load it again", name_.c_str());
  return {};
}

}  // namespace mote
