#include <bit>
#include <cstring>
#include <utility>

#include "base/crc32.h"
#include "base/size.h"
#include "runner/program/mapped.h"
#include "runner/program/other_files.h"

namespace mote {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is read in place, little-endian");

struct ProgramHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t program_bytes;
  uint64_t file_bytes;
  uint32_t program_crc32;
  uint8_t reserved[28];
};
static_assert(sizeof(ProgramHeader) == kHeaderBytes);

constexpr char kProgramMagic[8] = {'M', 'O', 'T', 'E', '\r', '\n', '\x1a', '\n'};
constexpr uint32_t kProgramVersion = 5;
constexpr int64_t kMaxProgramBytes = int64_t{256} << 20;

Result<ProgramHeader> read_header(const std::string& name, std::span<const std::byte> bytes) {
  MOTE_REQUIRE(bytes.size() >= sizeof(ProgramHeader), Code::kInvalidProgram,
               "%s: the file has %zu bytes: a .mote file starts with a header of 64", name.c_str(), bytes.size());
  MOTE_REQUIRE(std::memcmp(bytes.data(), kProgramMagic, sizeof(kProgramMagic)) == 0, Code::kInvalidProgram,
               "%s: not a .mote file: %s", name.c_str(), what_else(bytes).c_str());
  ProgramHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  MOTE_REQUIRE(header.version == kProgramVersion, Code::kUnsupportedVersion,
               "%s: version = %u: this runner reads version %u; export the model again or use another runner",
               name.c_str(), header.version, kProgramVersion);
  MOTE_REQUIRE(header.header_bytes == sizeof(ProgramHeader), Code::kInvalidProgram, "%s: header_bytes = %u: must be 64",
               name.c_str(), header.header_bytes);
  const Size end = Size(sizeof(ProgramHeader)) + header.program_bytes;
  MOTE_REQUIRE(header.program_bytes > 0 && Size(header.program_bytes).at_most(kMaxProgramBytes) &&
                   end.at_most(header.file_bytes),
               Code::kInvalidProgram, "%s: program_bytes = %llu: must be 1..%lld and end inside the file", name.c_str(),
               static_cast<unsigned long long>(header.program_bytes), static_cast<long long>(kMaxProgramBytes));
  for (const uint8_t byte : header.reserved) {
    MOTE_REQUIRE(byte == 0, Code::kInvalidProgram, "%s: header.reserved: must be zero", name.c_str());
  }
  return header;
}

}  // namespace

Result<FileSizes> file_sizes(const std::string& name, std::span<const std::byte> beginning) {
  MOTE_ASSIGN(const ProgramHeader header, read_header(name, beginning));
  return FileSizes{header.program_bytes, header.file_bytes};
}

// Checks the header, then copies the flatbuffer and checks the copy.
Status Mapped::read_program() {
  const std::string& name = file_.name();
  const std::span<const std::byte> bytes = file_.bytes();
  MOTE_ASSIGN(const ProgramHeader header, read_header(name, bytes));
  MOTE_REQUIRE(header.file_bytes == bytes.size(), Code::kInvalidProgram,
               "%s: file_bytes = %llu: the file has %zu bytes, so it was truncated or appended to", name.c_str(),
               static_cast<unsigned long long>(header.file_bytes), bytes.size());
  program_bytes_ = static_cast<size_t>(header.program_bytes);
  program_ = allocate_aligned(program_bytes_);
  MOTE_REQUIRE(program_ != nullptr, Code::kOutOfMemory, "%s: no memory for the program (%zu bytes)", name.c_str(),
               program_bytes_);
  std::memcpy(program_.get(), bytes.data() + sizeof(ProgramHeader), program_bytes_);
  const uint32_t checksum = crc32(program_bytes());
  MOTE_REQUIRE(checksum == header.program_crc32, Code::kInvalidProgram,
               "%s: program_crc32 = %08x: the program has checksum %08x, so the file is damaged", name.c_str(),
               header.program_crc32, checksum);
  return {};
}

std::vector<std::span<const std::byte>> Mapped::mapped_pages() const {
  std::vector<std::span<const std::byte>> pages;
  for (const SourceBytes* source : {&file_, weights_file()}) {
    if (source != nullptr && !source->mapped_pages().empty()) pages.push_back(source->mapped_pages());
  }
  return pages;
}

Status Mapped::check_readable() const {
  MOTE_RETURN_IF_ERROR(file_.check_readable());
  return weights_file() != nullptr ? weights_file()->check_readable() : Status();
}

void Mapped::evict() const {
  file_.evict();
  if (weights_file() != nullptr) weights_file()->evict();
}

Status Mapped::check_unchanged() const {
  MOTE_RETURN_IF_ERROR(file_.check_unchanged());
  return weights_file() != nullptr ? weights_file()->check_unchanged() : Status();
}

Status Mapped::require_weights_file(const std::function<Result<SourceBytes>()>& make) const {
  const std::lock_guard lock(weights_->making);
  if (weights_file() != nullptr) return {};
  MOTE_ASSIGN(SourceBytes made, make());
  weights_->add(std::move(made));
  return {};
}

Result<Mapped> map(const Source& source, LoadMode mode, const Progress& progress) {
  Result<SourceBytes> taken = SourceBytes::take(source, mode, progress);
  if (!taken.ok()) {
    const auto* path = std::get_if<std::string>(&source);
    return path == nullptr ? taken.status() : with_advice(*path, taken.status());
  }
  Mapped mapped(std::move(*taken));
  const Status read = mapped.read_program();
  MOTE_RETURN_IF_ERROR(mapped.check_readable());  // says more than that zeros are no program
  if (!read.ok()) return read;
  return mapped;
}

}  // namespace mote
