#include "runner/store/record.h"

#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "base/open_file.h"
#include "runner/program/verified.h"

namespace mote::store {
namespace {

constexpr size_t kHashedAtOnce = size_t{1} << 20;

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
#if defined(_WIN32)
  gmtime_s(&parts, &now);
#else
  gmtime_r(&now, &parts);
#endif
  return format("%04d-%02d-%02dT%02d:%02d:%02d+00:00", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<std::string> hash_of(const std::string& path, int descriptor) {
  Sha256 digest;
  std::vector<std::byte> piece(kHashedAtOnce);
  while (true) {
    const ReadBytes read = read_some(descriptor, piece);
    MOTE_REQUIRE(read.error.empty(), Code::kFileUnreadable, "%s: cannot be read: %s", path.c_str(), read.error.c_str());
    if (read.count == 0) return digest.hex();
    digest.update(std::span(piece).first(read.count));
  }
}

// What the file says of how it was made. A file that this build cannot read says nothing.
void add_provenance(const std::string& path, Manifest& manifest) {
  Result<Mapped> mapped = map(path, LoadMode::kMapUnguarded);
  if (!mapped.ok()) return;
  const Result<Verified> verified = verify(*std::move(mapped));
  if (!verified.ok()) return;
  const fb::Provenance& made = *verified->program().provenance();
  manifest.recipe = made.recipe()->str();
  manifest.model_type = made.model_type()->str();
}

}  // namespace

Result<Manifest> parse_known(std::string_view json) {
  const std::optional<JsonTree> tree = parse_json_tree(json, 2);
  MOTE_REQUIRE(tree && tree->kind == JsonTree::Kind::kObject, Code::kInvalidArgument,
               "manifest: must be a JSON object of texts");
  Manifest known;
  for (const auto& [name, field] : {std::pair("repo", &Manifest::repo), std::pair("revision", &Manifest::revision),
                                    std::pair("commit", &Manifest::commit), std::pair("file", &Manifest::file),
                                    std::pair("source", &Manifest::source), std::pair("license", &Manifest::license)}) {
    const JsonTree* value = tree->find(name);
    if (value != nullptr && value->kind == JsonTree::Kind::kString) known.*field = value->text;
  }
  return known;
}

Status record(const std::string& path, Manifest known) {
  MOTE_ASSIGN(const OpenedFile file, open_regular_file(path));
  known.bytes = file.info.bytes;
  if (known.sha256.empty()) { MOTE_ASSIGN(known.sha256, hash_of(path, file.descriptor.get())); }
  add_provenance(path, known);
  known.pulled_at = now_text();
  return write_manifest(path, known);
}

}  // namespace mote::store
