#include "runner/store/part.h"

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "base/path.h"
#include "runner/store/catalog.h"

namespace mote::store {
namespace {

// Linux keeps what is written at once in as large pages as fit it, and reads of a mapped file from those take two
// thirds of the time on a virtual machine.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr int64_t kHashBytes = int64_t{32} << 20;
constexpr size_t kReadBytes = size_t{1} << 20;

std::string text_of(const JsonTree& tree, std::string_view name) {
  const JsonTree* value = tree.find(name);
  return value != nullptr && value->kind == JsonTree::Kind::kString ? value->text : "";
}

void remove_file(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(to_path(path), ignored);
}

}  // namespace

Part::Part(Wanted wanted, std::string etag, int64_t first_total, GrowingFile file)
    : wanted_(std::move(wanted)), etag_(std::move(etag)), first_total_(first_total), file_(std::move(file)) {
  begin_hashes();
}

Result<Part> Part::open(const Wanted& wanted) {
  Wanted known = wanted;
  const std::string path = wanted.path + std::string(kPart);
  const std::optional<JsonTree> info = parse_json_tree(read_text(path + std::string(kManifest)), kMaxManifestDepth);
  std::string etag;
  int64_t bytes = -1;
  if (info && info->kind == JsonTree::Kind::kObject) {
    etag = text_of(*info, "etag");
    const JsonTree* number = info->find("bytes");
    if (number != nullptr && number->kind == JsonTree::Kind::kInteger) bytes = static_cast<int64_t>(number->number);
  }
  const bool is_same = bytes >= 0 && (wanted.bytes < 0 || bytes == wanted.bytes) &&
                       text_of(*info, "url") == wanted.url && text_of(*info, "sha256") == wanted.sha256 &&
                       text_of(*info, "blob_id") == wanted.blob_id;
  if (is_same && wanted.bytes < 0 && bytes > 0) known.bytes = bytes;
  MOTE_ASSIGN(GrowingFile file, GrowingFile::open(path));
  if (!is_same || (known.bytes >= 0 && file.bytes() > known.bytes)) {
    MOTE_RETURN_IF_ERROR(file.truncate(0));
    etag.clear();
  }
  Part part(std::move(known), std::move(etag), wanted.bytes, std::move(file));
  MOTE_RETURN_IF_ERROR(part.write_info());
  return part;
}

std::string Part::info_path() const { return wanted_.path + std::string(kPart) + std::string(kManifest); }

Status Part::write_info() const {
  std::vector<std::pair<std::string_view, JsonText>> info = {{"etag", etag_},
                                                             {"sha256", wanted_.sha256},
                                                             {"blob_id", wanted_.blob_id},
                                                             {"bytes", std::max<int64_t>(wanted_.bytes, 0)}};
  if (!wanted_.url.empty()) info.emplace_back("url", wanted_.url);
  const std::string text = json_lines(info);
  // Not synced: after a crash of the system the part may begin anew.
  const std::string written = info_path() + ".new";
  MOTE_ASSIGN(GrowingFile file, GrowingFile::open(written));
  MOTE_RETURN_IF_ERROR(file.truncate(0));
  MOTE_RETURN_IF_ERROR(file.append(std::as_bytes(std::span(text))));
  std::error_code error;
  std::filesystem::rename(to_path(written), to_path(info_path()), error);
  MOTE_REQUIRE(!error, Code::kFileUnwritable, "%s: cannot be written: %s", info_path().c_str(),
               error.message().c_str());
  return {};
}

Status Part::note(const std::string& etag, int64_t total) {
  if (total < 0) total = wanted_.bytes;
  if (etag == etag_ && total == wanted_.bytes) return {};
  etag_ = etag;
  wanted_.bytes = total;
  return write_info();
}

void Part::begin_hashes() {
  num_hashed_ = 0;
  sha256_ = {};
  blob_ = {};
  if (wanted_.blob_id.empty()) return;
  const std::string start = "blob " + std::to_string(wanted_.bytes);
  blob_.update(std::as_bytes(std::span(start.c_str(), start.size() + 1)));
}

// What is known by one hash needs no other, but for the one that the manifest has.
void Part::hash(std::span<const std::byte> bytes) {
  sha256_.update(bytes);
  if (wanted_.sha256.empty() && !wanted_.blob_id.empty()) blob_.update(bytes);
  num_hashed_ += static_cast<int64_t>(bytes.size());
}

Status Part::append(std::span<const std::byte> bytes) {
  if (num_hashed_ == this->bytes()) hash(bytes);
  while (!bytes.empty()) {
    const int64_t room = kPieceBytes - this->bytes() % kPieceBytes;
    const size_t count = std::min(bytes.size(), static_cast<size_t>(room));
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (count == static_cast<size_t>(room)) MOTE_RETURN_IF_ERROR(flush());
  }
  return {};
}

// What could not be written is given up, so that the file ends with what is sure.
Status Part::flush() {
  const std::vector<std::byte> bytes = std::exchange(buffer_, {});
  const Status status = file_.append(bytes);
  if (!status.ok()) begin_hashes();
  return status;
}

Status Part::truncate(int64_t bytes) {
  MOTE_RETURN_IF_ERROR(flush());
  if (bytes == file_.bytes()) return {};
  begin_hashes();
  return file_.truncate(bytes);
}

Status Part::restart() {
  if (bytes() == 0 && etag_.empty() && wanted_.bytes == first_total_) return {};
  etag_.clear();
  wanted_.bytes = first_total_;
  MOTE_RETURN_IF_ERROR(truncate(0));
  return write_info();
}

Result<std::vector<std::byte>> Part::first_bytes(size_t count) {
  MOTE_RETURN_IF_ERROR(flush());
  std::vector<std::byte> bytes(std::min(count, static_cast<size_t>(file_.bytes())));
  for (size_t done = 0; done < bytes.size();) {
    const ReadBytes read = file_.read_at(static_cast<int64_t>(done), std::span(bytes).subspan(done));
    MOTE_REQUIRE(read.count > 0, Code::kFileUnreadable, "%s%s: cannot be read: %s", wanted_.path.c_str(), kPart.data(),
                 read.error.empty() ? "it became shorter" : read.error.c_str());
    done += read.count;
  }
  return bytes;
}

Result<bool> Part::hash_some() {
  MOTE_RETURN_IF_ERROR(flush());
  std::vector<std::byte> piece(kReadBytes);
  const int64_t end = std::min(file_.bytes(), num_hashed_ + kHashBytes);
  while (num_hashed_ < end) {
    const auto room = std::min(piece.size(), static_cast<size_t>(end - num_hashed_));
    const ReadBytes read = file_.read_at(num_hashed_, std::span(piece).first(room));
    MOTE_REQUIRE(read.count > 0, Code::kFileUnreadable, "%s%s: cannot be read: %s", wanted_.path.c_str(), kPart.data(),
                 read.error.empty() ? "it became shorter" : read.error.c_str());
    hash(std::span(piece).first(read.count));
  }
  return num_hashed_ < file_.bytes();
}

void Part::finish() const { remove_file(info_path()); }

void Part::drop() {
  buffer_.clear();
  remove_file(wanted_.path + std::string(kPart));
  finish();
}

}  // namespace mote::store
