#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/crc32.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "base/page_guard.h"
#include "base/size.h"
#include "runner/program/mapped.h"
#include "runner/program/other_files.h"

namespace mote {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is read in place, little-endian");

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t program_bytes;
  uint64_t file_bytes;
  uint32_t program_crc32;
  uint8_t reserved[28];
};
static_assert(sizeof(Header) == 64);

constexpr char kMagic[8] = {'M', 'O', 'T', 'E', '\r', '\n', '\x1a', '\n'};
constexpr uint32_t kVersion = 4;
constexpr size_t kChunkBytes = size_t{8} << 20;
constexpr int64_t kMaxProgramBytes = int64_t{256} << 20;

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

// Errors: kFileUnreadable, also for a file that ends early.
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

Status check_header(const std::string& name, const Header& header, uint64_t file_bytes) {
  MOTE_REQUIRE(header.version == kVersion, Code::kUnsupportedVersion,
               "%s: version = %u: this runner reads version %u; export the model again or use another runner",
               name.c_str(), header.version, kVersion);
  MOTE_REQUIRE(header.header_bytes == sizeof(Header), Code::kInvalidProgram, "%s: header_bytes = %u: must be 64",
               name.c_str(), header.header_bytes);
  MOTE_REQUIRE(header.file_bytes == file_bytes, Code::kInvalidProgram,
               "%s: file_bytes = %llu: the file has %llu bytes, so it was truncated or appended to", name.c_str(),
               static_cast<unsigned long long>(header.file_bytes), static_cast<unsigned long long>(file_bytes));
  const Size end = Size(sizeof(Header)) + header.program_bytes;
  MOTE_REQUIRE(
      header.program_bytes > 0 && Size(header.program_bytes).at_most(kMaxProgramBytes) && end.at_most(file_bytes),
      Code::kInvalidProgram, "%s: program_bytes = %llu: must be 1..%lld and end inside the file", name.c_str(),
      static_cast<unsigned long long>(header.program_bytes), static_cast<long long>(kMaxProgramBytes));
  for (const uint8_t byte : header.reserved) {
    MOTE_REQUIRE(byte == 0, Code::kInvalidProgram, "%s: header.reserved: must be zero", name.c_str());
  }
  return {};
}

}  // namespace

struct Mapped::State {
  std::string name;
  bool has_path = false;
  std::optional<uint32_t> user;  // that the file belongs to
  std::span<const std::byte> file;
  AlignedMemory program;
  size_t program_bytes = 0;
  AlignedMemory copy;                 // of the file
  std::shared_ptr<const void> owner;  // or of the memory that it is in
  MappedPages mapping;                // or the pages that it is in
  PageGuard guard;                    // of those; ends before them
  FileInfo::Identity identity;        // of what is mapped
  FileDescriptor descriptor;          // of what is mapped: its path may lead to another file by now

  Status map_part(const FilePart& part, bool is_guarded) {
    MOTE_ASSIGN(mapping, MappedPages::map(name, part.descriptor, part.offset, static_cast<size_t>(part.length)));
    if (is_guarded) guard = PageGuard(mapping.pages());
    file = mapping.part();
    return {};
  }

  Status allocate(size_t length) {
    copy = allocate_aligned(length);
    MOTE_REQUIRE(copy != nullptr, Code::kOutOfMemory, "%s: no memory for %zu bytes", name.c_str(), length);
    file = {copy.get(), length};
    return {};
  }

  Status read_part(const FilePart& part, const Progress& progress) {
    const auto length = static_cast<size_t>(part.length);
    MOTE_RETURN_IF_ERROR(allocate(length));
    return in_chunks(length, progress, [&](size_t begin, size_t count) {
      return read_exactly(part, begin, {copy.get() + begin, count});
    });
  }

  // Maps or reads what `source` says of an open file.
  Status take_part(const FilePart& source, LoadMode mode, const Progress& progress) {
    const std::optional<FileInfo> info = info_of(source.descriptor);
    MOTE_REQUIRE(info.has_value(), Code::kInvalidArgument, "%s: descriptor = %d: is not open", name.c_str(),
                 source.descriptor);
    MOTE_RETURN_IF_ERROR(require_regular(name, info->kind));
    user = info->owner;
    MOTE_ASSIGN(const FilePart part, within(source, info->bytes));
    MOTE_RETURN_IF_ERROR(check_size(static_cast<size_t>(part.length)));
    if (mode == LoadMode::kRead || !is_aligned(name, static_cast<uint64_t>(part.offset)))
      return read_part(part, progress);
    MOTE_RETURN_IF_ERROR(map_part(part, mode == LoadMode::kMap));
    identity = info->identity;
    descriptor = duplicate(part.descriptor);
    MOTE_REQUIRE(descriptor.get() >= 0, Code::kFileUnreadable, "%s: cannot be kept open: %s", name.c_str(),
                 std::strerror(errno));
    return {};
  }

  Status take(const std::string& path, LoadMode mode, const Progress& progress) {
    name = path;
    has_path = true;
    const Result<OpenedFile> opened = open_regular_file(path);
    if (!opened.ok()) return with_advice(path, opened.status());
    return take_part({path, opened->descriptor.get()}, mode, progress);
  }

  Status take(const FilePart& part, LoadMode mode, const Progress& progress) {
    name = part.name;
    return take_part(part, mode, progress);
  }

  Status take(const MemoryBytes& memory, LoadMode mode, const Progress& progress) {
    name = memory.name;
    const std::span<const std::byte> bytes = memory.bytes;
    if (mode != LoadMode::kRead && is_aligned(name, reinterpret_cast<uintptr_t>(bytes.data()))) {
      file = bytes;
      owner = memory.owner;
      return {};
    }
    MOTE_RETURN_IF_ERROR(check_size(bytes.size()));
    MOTE_RETURN_IF_ERROR(allocate(bytes.size()));
    return in_chunks(bytes.size(), progress, [&](size_t begin, size_t count) {
      std::memcpy(copy.get() + begin, bytes.data() + begin, count);
      return Status();
    });
  }

  Status check_size(size_t bytes) const {
    MOTE_REQUIRE(bytes >= sizeof(Header), Code::kInvalidProgram,
                 "%s: the file has %zu bytes: a .mote file starts with a header of 64", name.c_str(), bytes);
    return {};
  }

  // Checks the header, then copies the flatbuffer and checks the copy.
  Status read_program() {
    MOTE_RETURN_IF_ERROR(check_size(file.size()));
    MOTE_REQUIRE(std::memcmp(file.data(), kMagic, sizeof(kMagic)) == 0, Code::kInvalidProgram,
                 "%s: not a .mote file: %s", name.c_str(), what_else(file).c_str());
    Header header;
    std::memcpy(&header, file.data(), sizeof(header));
    MOTE_RETURN_IF_ERROR(check_header(name, header, file.size()));
    program_bytes = static_cast<size_t>(header.program_bytes);
    program = allocate_aligned(program_bytes);
    MOTE_REQUIRE(program != nullptr, Code::kOutOfMemory, "%s: no memory for the program (%zu bytes)", name.c_str(),
                 program_bytes);
    std::memcpy(program.get(), file.data() + sizeof(Header), program_bytes);
    const uint32_t checksum = crc32({program.get(), program_bytes});
    MOTE_REQUIRE(checksum == header.program_crc32, Code::kInvalidProgram,
                 "%s: program_crc32 = %08x: the program has checksum %08x, so the file is damaged", name.c_str(),
                 header.program_crc32, checksum);
    return {};
  }
};

Mapped::Mapped(std::unique_ptr<State> state) : state_(std::move(state)) {}
Mapped::Mapped(Mapped&&) noexcept = default;
Mapped& Mapped::operator=(Mapped&&) noexcept = default;
Mapped::~Mapped() = default;

const std::string& Mapped::name() const { return state_->name; }
bool Mapped::has_path() const { return state_->has_path; }
std::optional<uint32_t> Mapped::owner() const { return state_->user; }
std::span<const std::byte> Mapped::file_bytes() const { return state_->file; }
std::span<const std::byte> Mapped::program_bytes() const { return {state_->program.get(), state_->program_bytes}; }

Status Mapped::check_readable() const {
  MOTE_REQUIRE(!state_->guard.has_lost(), Code::kFileChanged,
               "%s: the file became shorter, or its disk failed, after it was loaded; load it again",
               state_->name.c_str());
  return {};
}

Status Mapped::check_unchanged() const {
  if (state_->mapping.empty()) return {};
  MOTE_RETURN_IF_ERROR(check_readable());
  const std::optional<FileInfo> info = info_of(state_->descriptor.get());
  MOTE_REQUIRE(info.has_value() && info->identity == state_->identity, Code::kFileChanged,
               "%s: the file was changed after it was loaded; load it again", state_->name.c_str());
  return {};
}

Result<Mapped> map(const Source& source, LoadMode mode, const Progress& progress) {
  auto state = std::make_unique<Mapped::State>();
  MOTE_RETURN_IF_ERROR(std::visit([&](const auto& from) { return state->take(from, mode, progress); }, source));
  const Status read = state->read_program();
  Mapped mapped(std::move(state));
  MOTE_RETURN_IF_ERROR(mapped.check_readable());  // says more than that zeros are no program
  if (!read.ok()) return read;
  return mapped;
}

}  // namespace mote
