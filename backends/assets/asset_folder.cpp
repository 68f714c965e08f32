#include "backends/assets/asset_folder.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "base/digest.h"
#include "base/open_file.h"
#include "base/path.h"

namespace mote::assets {
namespace {

constexpr int kMostEntries = 4096;  // of a folder; one of an asset has some
constexpr size_t kChunk = size_t{1} << 20;

Status missing(const std::string& place, const std::string& path) {
  return {Code::kFileNotFound, format("%s: its asset %s is not there: keep it beside the file, under this name",
                                      place.c_str(), path.c_str())};
}

// Links lead out of what was shipped, so an asset has none.
Status check_entries(const std::string& place, const std::string& path) {
  std::error_code error;
  int count = 0;
  auto entry = std::filesystem::recursive_directory_iterator(to_path(path), error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = to_text(entry->path());
    const std::optional<FileInfo> info = info_of_name(name);
    const bool fits = info && (info->kind == FileKind::kRegular || info->kind == FileKind::kFolder);
    MOTE_REQUIRE(fits, Code::kFileUnreadable, "%s: %s of its asset is %s: must be a file or a folder", place.c_str(),
                 name.c_str(), info ? name_of(info->kind) : "not to be read");
    MOTE_REQUIRE(++count <= kMostEntries, Code::kFileUnreadable, "%s: its asset %s has more than %d files",
                 place.c_str(), path.c_str(), kMostEntries);
  }
  MOTE_REQUIRE(!error, Code::kFileUnreadable, "%s: its asset %s: %s", place.c_str(), path.c_str(),
               error.message().c_str());
  return {};
}

}  // namespace

Result<AssetFolder> AssetFolder::find(const DelegateSource& source, const Reference& reference, const AssetKind& kind) {
  AssetFolder found;
  found.kind_ = &kind;
  found.place_ = source.parts.front().place;
  MOTE_REQUIRE(!source.path.empty(), Code::kFileUnreadable, "%s: its asset %s is looked for beside a file with a path",
               found.place_.c_str(), reference.asset.c_str());
  found.path_ = to_text(to_path(source.path).parent_path() / to_path(reference.asset));
  const std::optional<FileInfo> folder = info_of_name(found.path_);
  if (!folder) return missing(found.place_, found.path_);
  MOTE_REQUIRE(folder->kind == FileKind::kFolder, Code::kFileUnreadable, "%s: its asset %s is %s: must be a folder",
               found.place_.c_str(), found.path_.c_str(), name_of(folder->kind));
  MOTE_RETURN_IF_ERROR(check_entries(found.place_, found.path_));
  for (const std::string_view name : kind.files) {
    const std::optional<FileInfo> info = info_of_name(found.path_ + "/" + std::string(name));
    if (!info || info->kind != FileKind::kRegular) return missing(found.place_, found.path_);
    const FileInfo::Identity& id = info->identity;
    found.version_ += format("%llu %llu %lld %lld %lld; ", static_cast<unsigned long long>(id.device),
                             static_cast<unsigned long long>(id.number), static_cast<long long>(id.bytes),
                             static_cast<long long>(id.seconds), static_cast<long long>(id.nanoseconds));
  }
  return found;
}

Status AssetFolder::check_content(const Reference& reference, const Progress& progress) const {
  Sha256 digest;
  std::vector<std::byte> chunk(kChunk);
  for (const std::string_view name : kind_->files) {
    MOTE_ASSIGN(const OpenedFile file, open_regular_file(path_ + "/" + std::string(name), Links::kRefuse));
    for (int64_t done = 0;;) {
      const ReadBytes read = read_some(file.descriptor.get(), chunk);
      MOTE_REQUIRE(read.error.empty(), Code::kFileUnreadable, "%s: its asset %s: %s", place_.c_str(), path_.c_str(),
                   read.error.c_str());
      if (read.count == 0) break;
      digest.update(std::span(chunk).first(read.count));
      done += static_cast<int64_t>(read.count);
      const auto all = static_cast<double>(std::max<int64_t>(file.info.bytes, done));
      MOTE_RETURN_IF_ERROR(report(progress, static_cast<double>(done) / all));
    }
  }
  MOTE_REQUIRE(digest.hex() == reference.sha256, Code::kFileChanged,
               "%s: its asset %s is not the one that it was exported with: export again, or put the right one there",
               place_.c_str(), path_.c_str());
  return {};
}

}  // namespace mote::assets
