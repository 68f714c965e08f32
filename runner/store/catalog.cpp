#include "runner/store/catalog.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/closest.h"
#include "base/json.h"
#include "base/path.h"

namespace mote::store {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTextBytes = int64_t{1} << 20;

struct TextField {
  const char* name;
  std::string Manifest::* field;
};
constexpr std::array kTextFields = {
    TextField{"repo", &Manifest::repo},       TextField{"revision", &Manifest::revision},
    TextField{"commit", &Manifest::commit},   TextField{"file", &Manifest::file},
    TextField{"source", &Manifest::source},   TextField{"sha256", &Manifest::sha256},
    TextField{"recipe", &Manifest::recipe},   TextField{"model_type", &Manifest::model_type},
    TextField{"license", &Manifest::license}, TextField{"pulled_at", &Manifest::pulled_at},
};

std::string user_folder() {
#if defined(_WIN32)
  return environment_variable("USERPROFILE");
#else
  return environment_variable("HOME");
#endif
}

int64_t seconds_of(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(path, error);
  if (error) return 0;
  const auto age = fs::file_time_type::clock::now() - time;
  const auto when =
      std::chrono::system_clock::now() - std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
  return std::chrono::duration_cast<std::chrono::seconds>(when.time_since_epoch()).count();
}

// The regular files below a folder. What cannot be read is left out.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, kOptions, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

// Of a file or part of the folder of all models; nothing: it lies where no model's file does.
std::optional<Name> name_of(const fs::path& models, const fs::path& path, std::string_view suffix) {
  std::vector<std::string> parts;
  for (const fs::path& part : path.lexically_relative(models)) parts.push_back(to_text(part));
  if (parts.size() < 3) return std::nullopt;
  const size_t at = parts[1].find('@');
  Name name{parts[0] + "/" + parts[1].substr(0, at), at == std::string::npos ? "" : unquote(parts[1].substr(at + 1)),
            ""};
  parts.back() = without_suffix(parts.back(), suffix);
  for (size_t i = 2; i < parts.size(); ++i) name.tag += (i == 2 ? "" : "/") + parts[i];
  return name;
}

int64_t total_of_part(const std::string& path) {
  const std::optional<JsonTree> tree = parse_json_tree(read_text(path + std::string(kManifest)), kMaxManifestDepth);
  const JsonTree* bytes = tree ? tree->find("bytes") : nullptr;
  return bytes != nullptr && bytes->kind == JsonTree::Kind::kInteger ? static_cast<int64_t>(bytes->number) : 0;
}

std::vector<std::string> files_of(std::span<const Entry> entries) {
  std::vector<std::string> files;
  for (const Entry& entry : entries) {
    std::string file = entry.name.tag + ".mote";
    if (std::ranges::find(files, file) == files.end()) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Manifest::json() const {
  std::vector<std::pair<std::string_view, JsonText>> fields;
  for (const TextField& each : kTextFields) {
    fields.emplace_back(each.name, this->*each.field);
    if (each.field == &Manifest::sha256) fields.emplace_back("bytes", bytes);
  }
  if (!url.empty()) fields.emplace_back("url", url);
  return json_lines(fields);
}

std::string default_root() {
  const std::string home = user_folder();
  if (std::string given = environment_variable("MOTE_HOME"); !given.empty()) {
    const bool is_below_home = given[0] == '~' && (given.size() == 1 || given[1] == '/');
    return is_below_home ? home + given.substr(1) : given;
  }
#if defined(__APPLE__)
  return home.empty() ? "" : home + "/Library/Caches/mote";
#else
  if (const std::string caches = environment_variable("XDG_CACHE_HOME"); !caches.empty()) return caches + "/mote";
  return home.empty() ? "" : home + "/.cache/mote";
#endif
}

std::string read_text(const std::string& path) {
  const Result<OpenedFile> file = open_regular_file(path);
  if (!file.ok() || file->info.bytes > kMostTextBytes) return {};
  std::string text(static_cast<size_t>(file->info.bytes), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ReadBytes read = read_some(file->descriptor.get(), std::as_writable_bytes(std::span(text)).subspan(done));
    if (read.count == 0) break;
    done += read.count;
  }
  text.resize(done);
  return text;
}

std::optional<Manifest> read_manifest(const std::string& path) {
  const std::optional<JsonTree> tree = parse_json_tree(read_text(path + std::string(kManifest)), kMaxManifestDepth);
  if (!tree || tree->kind != JsonTree::Kind::kObject) return std::nullopt;
  Manifest manifest;
  for (const TextField& each : kTextFields) {
    const JsonTree* value = tree->find(each.name);
    if (value == nullptr || value->kind != JsonTree::Kind::kString) return std::nullopt;
    manifest.*each.field = value->text;
  }
  const JsonTree *bytes = tree->find("bytes"), *url = tree->find("url");
  if (bytes == nullptr || bytes->kind != JsonTree::Kind::kInteger) return std::nullopt;
  manifest.bytes = static_cast<int64_t>(bytes->number);
  if (url != nullptr) manifest.url = url->text;
  return manifest;
}

Status write_manifest(const std::string& path, const Manifest& manifest) {
  const std::string text = manifest.json();
  MOTE_ASSIGN(AtomicFile file, AtomicFile::create(path + std::string(kManifest), AtomicFile::Access::kShared));
  MOTE_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(text))));
  return file.commit();
}

std::string Store::folder(const Name& name) const {
  return models() + "/" + name.repo + (name.revision.empty() ? "" : "@" + quote(name.revision));
}

std::vector<Entry> Store::entries(const std::optional<Name>& name) const {
  std::vector<Entry> whole, parts;
  const fs::path all = to_path(models());
  for (const fs::path& path : files_below(name ? to_path(folder(*name)) : all)) {
    Entry entry;
    entry.path = to_text(path);
    entry.is_whole = entry.path.ends_with(".mote");
    const std::string part_suffix = ".mote" + std::string(kPart);
    if (!entry.is_whole && !entry.path.ends_with(part_suffix)) continue;
    const std::optional<Name> found = name_of(all, path, entry.is_whole ? ".mote" : part_suffix);
    if (!found) continue;
    entry.name = *found;
    std::error_code error;
    const auto size = fs::file_size(path, error);
    entry.bytes = error ? 0 : static_cast<int64_t>(size);
    entry.total_bytes = entry.is_whole ? entry.bytes : total_of_part(entry.path);
    if (entry.is_whole) entry.manifest = read_manifest(entry.path);
    const std::string beside = entry.path + std::string(kManifest);
    entry.last_used_s = seconds_of(to_path(entry.manifest ? beside : entry.path));
    (entry.is_whole ? whole : parts).push_back(std::move(entry));
  }
  std::ranges::move(parts, std::back_inserter(whole));
  return whole;
}

Result<std::vector<Entry>> Store::meant(std::string_view text) const {
  MOTE_ASSIGN(const Name name, require_name(text));
  std::vector<Entry> found = entries(name);
  if (!name.tag.empty()) {
    const std::optional<std::string> file = choose(files_of(found), name.tag);
    std::erase_if(found, [&](const Entry& entry) { return !file || entry.name.tag + ".mote" != *file; });
  }
  if (!found.empty()) return found;
  std::vector<std::string> known;
  for (const Entry& entry : entries()) {
    known.push_back(entry.name.model());
    known.push_back(entry.name.text());
  }
  const std::vector<std::string_view> views(known.begin(), known.end());
  return Status(Code::kFileNotFound,
                format("the store has no model '%s'%s", std::string(text).c_str(), did_you_mean(text, views).c_str()));
}

Result<Entry> Store::find(std::string_view text) const {
  MOTE_ASSIGN(const std::vector<Entry> found, meant(text));
  std::vector<Entry> whole;
  std::ranges::copy_if(found, std::back_inserter(whole), &Entry::is_whole);
  const std::string shown(text);
  MOTE_REQUIRE(!whole.empty(), Code::kFileNotFound, "%s: only a part has come", shown.c_str());
  const std::optional<std::string> file = choose(files_of(whole), parse_name(text)->tag);
  std::string names;
  for (const Entry& entry : whole) names += (names.empty() ? "" : ", ") + entry.name.text();
  MOTE_REQUIRE(file.has_value(), Code::kInvalidArgument, "%s: the store has several files: say which: %s",
               shown.c_str(), names.c_str());
  const Entry entry = *std::ranges::find_if(whole, [&](const Entry& each) { return each.name.tag + ".mote" == *file; });
  std::error_code ignored;
  if (entry.manifest) {
    fs::last_write_time(to_path(entry.path + std::string(kManifest)), fs::file_time_type::clock::now(), ignored);
  }
  return entry;
}

Result<std::optional<FileLock>> Store::try_lock(const Name& name) const {
  return FileLock::try_take(root_ + "/locks/" + quote(name.model()) + ".lock");
}

Status Store::remove(const Entry& entry) const {
  MOTE_ASSIGN(const std::optional<FileLock> lock, try_lock(entry.name));
  MOTE_REQUIRE(lock.has_value(), Code::kInvalidState,
               "%s: another process downloads it now: stop that first, or wait for it", entry.name.model().c_str());
  return remove_locked(entry);
}

Status Store::remove_locked(const Entry& entry) const {
  std::error_code error;
  fs::remove(to_path(entry.path), error);
  MOTE_REQUIRE(!error, Code::kFileUnwritable, "%s: cannot be deleted: %s", entry.path.c_str(), error.message().c_str());
  fs::remove(to_path(entry.path + std::string(kManifest)), error);
  const fs::path all = to_path(models());
  for (fs::path folder = to_path(entry.path).parent_path(); folder != all && !folder.lexically_relative(all).empty();
       folder = folder.parent_path()) {
    if (!fs::remove(folder, error) || error) break;
  }
  return {};
}

std::vector<Entry> Store::evict(int64_t max_bytes) const {
  std::vector<Entry> found = entries(), removed;
  int64_t total = 0;
  for (const Entry& entry : found) total += entry.bytes;
  std::erase_if(found, [](const Entry& entry) { return !entry.is_whole; });
  std::ranges::stable_sort(found, {}, &Entry::last_used_s);
  for (const Entry& entry : found) {
    if (total <= max_bytes) break;
    if (is_in_use(entry.path) || !remove(entry).ok()) continue;
    total -= entry.bytes;
    removed.push_back(entry);
  }
  return removed;
}

}  // namespace mote::store
