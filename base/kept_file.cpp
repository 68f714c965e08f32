#include "base/kept_file.h"

#include <cstring>

#include "base/atomic_file.h"
#include "base/crc32.h"
#include "base/digest.h"

namespace mote {
namespace {

constexpr char kKeptMagic[8] = {'M', 'O', 'T', 'E', 'K', 'E', 'P', '\n'};

// Its content follows.
struct KeptHeader {
  char magic[8];
  char identity[64];  // SHA-256, in hexadecimal digits
  uint64_t bytes;
  uint32_t crc32;         // of the content
  uint32_t header_crc32;  // of all before
};
static_assert(sizeof(KeptHeader) == 88);

KeptHeader header_of(const std::string& identity, std::span<const std::byte> content) {
  KeptHeader header{};
  std::memcpy(header.magic, kKeptMagic, sizeof(kKeptMagic));
  Sha256 digest;
  digest.update(std::as_bytes(std::span(identity)));
  std::memcpy(header.identity, digest.hex().data(), sizeof(header.identity));
  header.bytes = content.size();
  header.crc32 = crc32(content);
  header.header_crc32 = crc32(std::as_bytes(std::span(&header, 1)).first(offsetof(KeptHeader, header_crc32)));
  return header;
}

Status fill(const OpenedFile& file, const std::string& path, std::span<std::byte> to) {
  while (!to.empty()) {
    const ReadBytes read = read_some(file.descriptor.get(), to);
    MOTE_REQUIRE(read.count > 0, Code::kFileUnreadable, "%s: cannot be read: %s", path.c_str(),
                 read.error.empty() ? "it ends early" : read.error.c_str());
    to = to.subspan(read.count);
  }
  return {};
}

}  // namespace

Status require_trusted_owner(const std::string& path, const FileInfo& info, std::optional<uint32_t> also_trusted) {
  MOTE_REQUIRE(!info.owner || info.owner == this_user() || info.owner == also_trusted, Code::kFileUnreadable,
               "%s: belongs to user %u: must belong to this user or to the owner of the model", path.c_str(),
               *info.owner);
  MOTE_REQUIRE(!info.others_may_write, Code::kFileUnreadable,
               "%s: other users can write to it: only its owner must be able to", path.c_str());
  return {};
}

Result<std::vector<std::byte>> KeptFile::read(uint64_t max_bytes) const {
  MOTE_ASSIGN(const OpenedFile file, open_regular_file(path, Links::kRefuse));
  MOTE_RETURN_IF_ERROR(require_trusted_owner(path, file.info, also_trusted));
  const auto all = static_cast<uint64_t>(file.info.bytes);
  MOTE_REQUIRE(all >= sizeof(KeptHeader) && all - sizeof(KeptHeader) <= max_bytes, Code::kFileChanged,
               "%s: %llu bytes: must be %zu to %llu", path.c_str(), static_cast<unsigned long long>(all),
               sizeof(KeptHeader), static_cast<unsigned long long>(max_bytes + sizeof(KeptHeader)));
  KeptHeader header{};
  MOTE_RETURN_IF_ERROR(fill(file, path, std::as_writable_bytes(std::span(&header, 1))));
  std::vector<std::byte> content(static_cast<size_t>(all - sizeof(KeptHeader)));
  MOTE_RETURN_IF_ERROR(fill(file, path, content));
  const KeptHeader expected = header_of(identity, content);
  MOTE_REQUIRE(std::memcmp(header.identity, expected.identity, sizeof(header.identity)) == 0, Code::kFileChanged,
               "%s: was kept for something else", path.c_str());
  MOTE_REQUIRE(std::memcmp(&header, &expected, sizeof(header)) == 0, Code::kFileChanged, "%s: is damaged",
               path.c_str());
  return content;
}

Status KeptFile::write(std::span<const std::byte> bytes) const {
  MOTE_ASSIGN(AtomicFile file,
              AtomicFile::create(path, AtomicFile::Access::kOwner, {Links::kRefuse, AtomicFile::Temporary::kUnnamed}));
  const KeptHeader header = header_of(identity, bytes);
  MOTE_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(&header, 1))));
  MOTE_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

}  // namespace mote
