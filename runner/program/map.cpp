#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/crc32.h"
#include "base/size.h"
#include "runner/program/mapped.h"

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
constexpr uint32_t kVersion = 3;
constexpr size_t kAlignment = 64;
constexpr int64_t kMaxProgramBytes = int64_t{256} << 20;

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::byte, FreeDeleter>;

// At a multiple of 64; nullptr when the system has no memory.
Buffer allocate_aligned(size_t bytes) {
  const Size rounded = (Size(bytes) + 1).align_up(kAlignment);
  if (!rounded.valid()) return nullptr;
  return Buffer(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded.unsigned_value())));
}

Buffer copy_aligned(std::span<const std::byte> bytes) {
  Buffer copy = allocate_aligned(bytes.size());
  if (copy != nullptr && !bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return copy;
}

// What tells one version of a file from another.
struct Identity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
  bool operator==(const Identity&) const = default;
};

Identity identity_of(const struct stat& info) {
#if defined(__APPLE__)
  const timespec& time = info.st_mtimespec;
#else
  const timespec& time = info.st_mtim;
#endif
  return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino), static_cast<int64_t>(info.st_size),
          static_cast<int64_t>(time.tv_sec), static_cast<int64_t>(time.tv_nsec)};
}

// Errors: kFileUnreadable, also for a file that ends early.
Status read_all(const std::string& path, int descriptor, std::span<std::byte> to) {
  for (size_t done = 0; done < to.size();) {
    const ssize_t count = ::pread(descriptor, to.data() + done, to.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    MOTE_REQUIRE(count > 0, Code::kFileUnreadable, "%s: cannot be read at byte %zu: %s", path.c_str(), done,
                 count < 0 ? std::strerror(errno) : "the file became shorter");
    done += static_cast<size_t>(count);
  }
  return {};
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Status check_header(const std::string& name, const Header& header, uint64_t file_bytes) {
  MOTE_REQUIRE(std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0, Code::kInvalidProgram,
               "%s: not a .mote file: the first 8 bytes are not MOTE\\r\\n\\x1a\\n", name.c_str());
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
  std::span<const std::byte> file;
  Buffer program;
  size_t program_bytes = 0;
  Buffer owned;             // a copy of the file
  void* mapping = nullptr;  // or the file
  Identity identity;
  bool is_file = false;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (mapping != nullptr) ::munmap(mapping, file.size());
  }

  Status map_file(const std::string& path, int descriptor, size_t length) {
    void* mapped = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    MOTE_REQUIRE(mapped != MAP_FAILED, Code::kFileUnreadable, "%s: cannot be mapped (%zu bytes): %s", path.c_str(),
                 length, std::strerror(errno));
    mapping = mapped;
    file = {static_cast<const std::byte*>(mapped), length};
    return {};
  }

  Status read_file(const std::string& path, int descriptor, size_t length) {
    owned = allocate_aligned(length);
    MOTE_REQUIRE(owned != nullptr, Code::kOutOfMemory, "%s: no memory for %zu bytes", path.c_str(), length);
    file = {owned.get(), length};
    return read_all(path, descriptor, {owned.get(), length});
  }

  // Checks the header, then copies the flatbuffer and checks the copy.
  Status read_program() {
    MOTE_REQUIRE(file.size() >= sizeof(Header), Code::kInvalidProgram,
                 "%s: the file has %zu bytes: a .mote file starts with a header of 64", name.c_str(), file.size());
    Header header;
    std::memcpy(&header, file.data(), sizeof(header));
    MOTE_RETURN_IF_ERROR(check_header(name, header, file.size()));
    program_bytes = static_cast<size_t>(header.program_bytes);
    program = copy_aligned(file.subspan(sizeof(Header), program_bytes));
    MOTE_REQUIRE(program != nullptr, Code::kOutOfMemory, "%s: no memory for the program (%zu bytes)", name.c_str(),
                 program_bytes);
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
bool Mapped::is_file() const { return state_->is_file; }
std::span<const std::byte> Mapped::file_bytes() const { return state_->file; }
std::span<const std::byte> Mapped::program_bytes() const { return {state_->program.get(), state_->program_bytes}; }

Status Mapped::check_unchanged() const {
  if (state_->mapping == nullptr) return {};
  struct stat info{};
  const bool same = ::stat(state_->name.c_str(), &info) == 0 && identity_of(info) == state_->identity;
  MOTE_REQUIRE(same, Code::kFileChanged, "%s: the file was changed or replaced after it was loaded; load it again",
               state_->name.c_str());
  return {};
}

Result<Mapped> map(const std::string& path, LoadMode mode) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::kFileNotFound : Code::kFileUnreadable;
    return Status(code, format("%s: cannot be opened: %s", path.c_str(), std::strerror(errno)));
  }
  struct stat info{};
  MOTE_REQUIRE(::fstat(file.get(), &info) == 0, Code::kFileUnreadable, "%s: cannot be read: %s", path.c_str(),
               std::strerror(errno));
  MOTE_REQUIRE(S_ISREG(info.st_mode), Code::kFileUnreadable, "%s: must be a regular file", path.c_str());
  const Size file_bytes = info.st_size;
  MOTE_REQUIRE(Size(sizeof(Header)).at_most(file_bytes), Code::kInvalidProgram,
               "%s: the file has %lld bytes: a .mote file starts with a header of 64", path.c_str(),
               static_cast<long long>(info.st_size));
  auto state = std::make_unique<Mapped::State>();
  const size_t length = static_cast<size_t>(file_bytes.unsigned_value());
  state->name = path;
  MOTE_RETURN_IF_ERROR(mode == LoadMode::kMap ? state->map_file(path, file.get(), length)
                                              : state->read_file(path, file.get(), length));
  state->identity = identity_of(info);
  state->is_file = true;
  MOTE_RETURN_IF_ERROR(state->read_program());
  return Mapped(std::move(state));
}

Result<Mapped> map_bytes(std::string name, std::span<const std::byte> bytes) {
  auto state = std::make_unique<Mapped::State>();
  state->name = std::move(name);
  state->owned = copy_aligned(bytes);
  MOTE_REQUIRE(state->owned != nullptr, Code::kOutOfMemory, "%s: no memory for %zu bytes", state->name.c_str(),
               bytes.size());
  state->file = {state->owned.get(), bytes.size()};
  MOTE_RETURN_IF_ERROR(state->read_program());
  return Mapped(std::move(state));
}

}  // namespace mote
