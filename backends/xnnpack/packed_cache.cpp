#include "backends/xnnpack/packed_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/crc32.h"
#include "base/kept_file.h"
#include "base/size.h"

namespace mote::xnnpack {
namespace {

constexpr char kMagic[8] = {'M', 'O', 'T', 'E', 'X', 'N', 'N', '\n'};
constexpr uint32_t kVersion = 2;
constexpr int64_t kAlignment = 64;
constexpr uint64_t kMaxTableBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxKeyBytes = uint64_t{1} << 20;
constexpr uint64_t kZerosBehind = uint64_t{64} << 20;
constexpr unsigned kMaxCheckingThreads = 4;

// header | packed weights, each from a multiple of 64 on and followed by zeros up to the next | table
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t num_entries;
  uint64_t file_bytes;
  uint64_t table_offset;
  CacheIdentity identity;
  uint32_t table_crc32;
  uint32_t header_crc32;  // of all before
  uint8_t reserved[56];
};
static_assert(sizeof(Header) == 128);

struct TableEntry {
  uint64_t offset;
  uint64_t bytes;
  uint32_t seed;
  uint32_t crc32;      // of the bytes and the zeros behind them
  uint64_t key_bytes;  // which follow
};
static_assert(sizeof(TableEntry) == 32);

uint32_t checksum(const Header& header) {
  return crc32(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_crc32)));
}

uint64_t align(uint64_t bytes) { return Size(bytes).align_up(kAlignment).unsigned_value(); }

Status check_header(const std::string& path, const Header& header, const CacheIdentity& identity, uint64_t file_bytes) {
  const auto refuse = [&](const char* why) { return Status(Code::kFileChanged, path + ": " + why); };
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return refuse("no file of packed weights");
  if (header.version != kVersion) return refuse("packed by another version of the runner");
  if (header.header_crc32 != checksum(header)) return refuse("header_crc32: the header is damaged");
  for (const uint8_t byte : header.reserved) {
    if (byte != 0) return refuse("header.reserved: must be zero");
  }
  if (header.identity.program_crc32 != identity.program_crc32 || header.identity.model_bytes != identity.model_bytes) {
    return refuse("packed for another model");
  }
  if (!(header.identity == identity)) return refuse("packed by another library or for another CPU");
  if (header.file_bytes != file_bytes) return refuse("file_bytes: the file was truncated or appended to");
  if (header.table_offset > file_bytes || header.table_offset < sizeof(Header) ||
      file_bytes - header.table_offset > kMaxTableBytes) {
    return refuse("table_offset: must be within the file");
  }
  return {};
}

}  // namespace

Result<CacheMapping> CacheMapping::make(const CachePlace& place, int descriptor, uint64_t bytes) {
  const std::string& path = place.path;
  const Size readable = Size(bytes) * 2 + kZerosBehind;
  MOTE_REQUIRE(readable.valid() && readable.unsigned_value() <= SIZE_MAX, Code::kFileUnreadable, "%s: too large",
               path.c_str());
  const auto length = static_cast<size_t>(readable.unsigned_value());
  void* data = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MOTE_REQUIRE(data != MAP_FAILED, Code::kFileUnreadable, "%s: no room for %zu bytes: %s", path.c_str(), length,
               std::strerror(errno));
  CacheMapping mapping(static_cast<const std::byte*>(data), static_cast<size_t>(bytes), length);
  MOTE_REQUIRE(::mmap(data, mapping.file_bytes_, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0) != MAP_FAILED,
               Code::kFileUnreadable, "%s: cannot be mapped: %s", path.c_str(), std::strerror(errno));
  if (place.guards_pages) mapping.guard_ = PageGuard(mapping.file());
  return mapping;
}

CacheMapping::CacheMapping(CacheMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      file_bytes_(other.file_bytes_),
      readable_bytes_(other.readable_bytes_),
      guard_(std::move(other.guard_)) {}

CacheMapping::~CacheMapping() {
  guard_ = PageGuard();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), readable_bytes_);
}

Result<PackedCache> PackedCache::open(const CachePlace& place) {
  const char* path = place.path.c_str();
  MOTE_ASSIGN(const OpenedFile file, open_regular_file(place.path, Links::kRefuse));
  MOTE_RETURN_IF_ERROR(require_trusted_owner(place.path, file.info, place.model_owner));
  const auto file_bytes = static_cast<uint64_t>(file.info.bytes);
  MOTE_REQUIRE(file_bytes > sizeof(Header), Code::kFileChanged, "%s: %llu bytes: too short", path,
               static_cast<unsigned long long>(file_bytes));
  MOTE_ASSIGN(CacheMapping mapping, CacheMapping::make(place, file.descriptor.get(), file_bytes));
  PackedCache cache(std::move(mapping));
  const std::span<const std::byte> bytes = cache.mapping_.file();
  Header header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  MOTE_RETURN_IF_ERROR(check_header(place.path, header, place.identity, file_bytes));
  // A copy, because a file that others write to may change between a check and a use.
  const std::span<const std::byte> mapped_table = bytes.subspan(static_cast<size_t>(header.table_offset));
  const std::vector<std::byte> table(mapped_table.begin(), mapped_table.end());
  MOTE_REQUIRE(crc32(table) == header.table_crc32, Code::kFileChanged, "%s: table_crc32: the table is damaged", path);
  if (const Status read = cache.read_table(table, header.num_entries, header.table_offset); !read.ok()) {
    return Status(read.code(), place.path + ": " + read.message());
  }
  MOTE_REQUIRE(cache.checksums_hold(), Code::kFileChanged, "%s: packed weights are damaged: their crc32 differs", path);
  return cache;
}

Status PackedCache::read_table(std::span<const std::byte> table, uint64_t num_entries, uint64_t payload_end) {
  uint64_t end = sizeof(Header);
  for (uint64_t i = 0; i < num_entries; ++i) {
    TableEntry entry{};
    MOTE_REQUIRE(table.size() >= sizeof(entry), Code::kFileChanged, "table[%llu]: ends early",
                 static_cast<unsigned long long>(i));
    std::memcpy(&entry, table.data(), sizeof(entry));
    table = table.subspan(sizeof(entry));
    const Size next = (Size(entry.offset) + entry.bytes).align_up(kAlignment);
    MOTE_REQUIRE(entry.key_bytes <= kMaxKeyBytes && entry.key_bytes <= table.size() && entry.offset == end &&
                     next.at_most(payload_end),
                 Code::kFileChanged, "table[%llu]: must have a key inside of the table and bytes behind those before",
                 static_cast<unsigned long long>(i));
    end = next.unsigned_value();
    const auto key_bytes = static_cast<size_t>(entry.key_bytes);
    PackedName name{{reinterpret_cast<const char*>(table.data()), key_bytes}, entry.seed};
    entries_.emplace(std::move(name), Entry{entry.offset, entry.bytes, entry.crc32});
    table = table.subspan(key_bytes);
  }
  MOTE_REQUIRE(end == payload_end && table.empty(), Code::kFileChanged, "table: must tell of every byte");
  return {};
}

bool PackedCache::checksums_hold() const {
  std::vector<const Entry*> entries;
  for (const auto& [name, entry] : entries_) entries.push_back(&entry);
  std::atomic<size_t> next = 0;
  std::atomic<bool> hold = true;
  const auto check = [&] {
    for (size_t i = next++; i < entries.size() && hold; i = next++) {
      const auto bytes = mapping_.file().subspan(static_cast<size_t>(entries[i]->offset),
                                                 static_cast<size_t>(align(entries[i]->bytes)));
      if (crc32(bytes) != entries[i]->crc32) hold = false;
    }
  };
  std::vector<std::thread> threads;
  try {
    const size_t num_threads =
        std::min<size_t>({std::thread::hardware_concurrency(), kMaxCheckingThreads, entries.size()});
    threads.reserve(num_threads);
    while (threads.size() + 1 < num_threads) threads.emplace_back(check);
  } catch (const std::system_error&) {
    // Fewer threads do the same.
  }
  check();
  for (std::thread& thread : threads) thread.join();
  return hold;
}

bool PackedCache::has(const std::string& key) const {
  const auto found = entries_.lower_bound({key, 0});
  return found != entries_.end() && found->first.key == key;
}

std::span<const std::byte> PackedCache::find(const PackedName& name, uint64_t max_bytes) const {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.bytes > max_bytes) return {};
  if (!(Size(found->second.offset) + max_bytes).at_most(mapping_.readable_bytes())) return {};
  return mapping_.file().subspan(static_cast<size_t>(found->second.offset), static_cast<size_t>(found->second.bytes));
}

Result<PackedCacheWriter> PackedCacheWriter::create(const CachePlace& place) {
  MOTE_ASSIGN(AtomicFile file, AtomicFile::create(place.path, AtomicFile::Access::kOwner,
                                                  {Links::kRefuse, AtomicFile::Temporary::kUnnamed}));
  PackedCacheWriter writer(place, std::move(file));
  const Header unfinished{};
  MOTE_RETURN_IF_ERROR(writer.file_.write(std::as_bytes(std::span(&unfinished, 1))));
  writer.end_ = sizeof(Header);
  return writer;
}

Result<uint64_t> PackedCacheWriter::append(const PackedName& name, std::span<const std::byte> bytes) {
  const std::byte zeros[kAlignment] = {};
  const std::span<const std::byte> padding(zeros, static_cast<size_t>(align(bytes.size()) - bytes.size()));
  MOTE_RETURN_IF_ERROR(file_.write(bytes));
  MOTE_RETURN_IF_ERROR(file_.write(padding));
  const TableEntry entry{end_, bytes.size(), name.seed, crc32(padding, crc32(bytes)), name.key.size()};
  const auto fixed = std::as_bytes(std::span(&entry, 1));
  const auto key = std::as_bytes(std::span(name.key));
  table_.insert(table_.end(), fixed.begin(), fixed.end());
  table_.insert(table_.end(), key.begin(), key.end());
  ++num_entries_;
  end_ += align(bytes.size());
  return entry.offset;
}

Result<CacheMapping> PackedCacheWriter::map() const { return CacheMapping::make(place_, file_.descriptor(), end_); }

Status PackedCacheWriter::commit() {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.num_entries = num_entries_;
  header.file_bytes = end_ + table_.size();
  header.table_offset = end_;
  header.identity = place_.identity;
  header.table_crc32 = crc32(table_);
  header.header_crc32 = checksum(header);
  MOTE_RETURN_IF_ERROR(file_.write(table_));
  MOTE_RETURN_IF_ERROR(file_.overwrite_start(std::as_bytes(std::span(&header, 1))));
  return file_.commit();
}

}  // namespace mote::xnnpack
