#include "runner/store/download.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/path.h"
#include "runner/store/http.h"
#include "runner/store/record.h"

namespace mote::store {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLockWaitMs = 200;

// As huggingface_hub reads it.
bool is_offline() {
  std::string value = environment_variable("HF_HUB_OFFLINE");
  std::ranges::transform(value, value.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::optional<int64_t> size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(to_path(path), error);
  return error ? std::nullopt : std::optional(static_cast<int64_t>(size));
}

bool is_token(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

const Status& status_of(const Status& status) { return status; }
template <typename T>
const Status& status_of(const Result<T>& result) {
  return result.status();
}

}  // namespace

Result<std::unique_ptr<Download>> Download::begin(const Store& store, std::string_view what,
                                                  const DownloadOptions& options) {
  const bool is_url = what.find("://") != what.npos;
  const std::optional<Name> name = is_url ? name_of_url(what) : parse_name(what);
  const std::string shown(what);
  MOTE_REQUIRE(name.has_value(), Code::kInvalidArgument,
               "'%s': must be org/name, org/name:file or org/name@revision of the hub, or an URL of a file",
               shown.c_str());
  DownloadOptions given = options;
  if (given.endpoint.empty()) given.endpoint = environment_variable("HF_ENDPOINT");
  if (given.endpoint.empty()) given.endpoint = "https://huggingface.co";
  if (given.token.empty() && !is_url) given.token = environment_variable("HF_TOKEN");
  while (given.endpoint.ends_with('/')) given.endpoint.pop_back();
  MOTE_REQUIRE(parse_url(given.endpoint).has_value(), Code::kInvalidArgument,
               "endpoint = '%s': must be an URL such as https://huggingface.co", given.endpoint.c_str());
  MOTE_REQUIRE(is_token(given.token), Code::kInvalidArgument, "the token has characters that none has");
  const bool is_hash =
      given.sha256.size() == 64 && given.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  MOTE_REQUIRE(given.sha256.empty() || (is_hash && is_url), Code::kInvalidArgument,
               "sha256 = '%s': must be 64 hexadecimal digits in lower case, of an URL; the hub has its own",
               given.sha256.c_str());
  std::unique_ptr<Download> download(new Download(store, *name, std::move(given)));
  if (is_url) download->url_ = what;
  return download;
}

template <typename T>
T Download::kept(T result) {
  if (failure_.ok()) failure_ = status_of(result);
  return result;
}

Result<Step> Download::next() {
  if (!failure_.ok()) return failure_;
  return kept(advance());
}

Result<bool> Download::respond(int status, std::string_view headers) {
  if (!failure_.ok()) return failure_;
  if (transfer_) return kept(transfer_->respond(status, headers));
  return lookup_ ? kept(lookup_->respond(status, headers)) : Result<bool>(false);
}

Status Download::write(std::span<const std::byte> bytes) {
  if (!failure_.ok()) return failure_;
  if (transfer_) return kept(transfer_->write(bytes));
  return lookup_ ? kept(lookup_->write(bytes)) : Status();
}

Status Download::end(std::string_view broken) {
  if (!failure_.ok()) return failure_;
  if (transfer_) return kept(transfer_->end(broken));
  return lookup_ ? kept(lookup_->end(broken)) : Status();
}

int64_t Download::bytes() const { return is_done_ ? bytes_ : transfer_ ? transfer_->part().bytes() : 0; }

int64_t Download::total_bytes() const { return is_done_ ? bytes_ : transfer_ ? transfer_->part().total() : -1; }

Result<Step> Download::advance() {
  if (is_done_) return Step{};
  if (!lock_) {
    MOTE_ASSIGN(lock_, store_.try_lock(name_));
    if (!lock_)
      return Step{
          .kind = Step::Kind::kWait, .wait_ms = kLockWaitMs, .reason = "another process downloads " + name_.model()};
  }
  if (!lookup_ && !transfer_ && url_.empty()) {
    MOTE_REQUIRE(!is_offline(), Code::kFileUnreadable,
                 "%s: HF_HUB_OFFLINE forbids to ask the hub; 'mote list' shows what is here", name_.text().c_str());
    lookup_.emplace(options_.endpoint, options_.token, name_);
  }
  if (lookup_ && !transfer_) {
    MOTE_ASSIGN(Step step, lookup_->next());
    if (step.kind != Step::Kind::kDone) return step;
  }
  if (!transfer_) MOTE_RETURN_IF_ERROR(find_file());
  if (is_done_) return Step{};
  MOTE_ASSIGN(Step step, transfer_->next());
  if (step.kind != Step::Kind::kDone) return step;
  MOTE_RETURN_IF_ERROR(finish());
  return Step{};
}

// Which file it is, and whether the store has it already.
Status Download::find_file() {
  if (!url_.empty()) {
    file_ = name_.tag + ".mote";
    path_ = store_.folder(name_) + "/" + file_;
    return begin_transfer({path_, url_, options_.sha256, "", -1}, url_);
  }
  const Listing& listing = lookup_->listing();
  std::vector<std::string> files;
  std::string known;
  for (const HubFile& file : listing.files) {
    files.push_back(file.path);
    const Name each{name_.repo, name_.revision, std::string(without_suffix(file.path, ".mote"))};
    known += (known.empty() ? "" : ", ") + each.text();
  }
  MOTE_REQUIRE(!files.empty(), Code::kFileNotFound, "%s: the repository has no .mote file", name_.model().c_str());
  const std::optional<std::string> chosen = choose(files, name_.tag);
  MOTE_REQUIRE(chosen.has_value(), Code::kInvalidArgument, "%s: has %s%s%s: say which: %s", name_.model().c_str(),
               name_.tag.empty() ? "several files" : "no file, or several, for '", name_.tag.c_str(),
               name_.tag.empty() ? "" : "'", known.c_str());
  const HubFile& file = *std::ranges::find(listing.files, *chosen, &HubFile::path);
  file_ = file.path;
  path_ = store_.folder(name_) + "/" + file_;
  const std::optional<Manifest> manifest = read_manifest(path_);
  if (manifest && manifest->bytes == file.bytes && size_of(path_) == file.bytes &&
      (file.sha256.empty() ? manifest->commit == listing.commit : manifest->sha256 == file.sha256)) {
    is_done_ = true;
    bytes_ = file.bytes;
    return {};
  }
  const std::string revision = listing.commit.empty() ? "main" : listing.commit;
  // Git's hash begins with the size, without which it says nothing.
  const std::string blob_id = file.bytes < 0 ? "" : file.blob_id;
  return begin_transfer({path_, "", file.sha256, blob_id, file.bytes},
                        options_.endpoint + "/" + name_.repo + "/resolve/" + quote(revision) + "/" + quote(file_, "/"));
}

Status Download::begin_transfer(Wanted wanted, const std::string& url) {
  TransferOptions options{.name = name_.model(), .file = file_, .url = url, .token = options_.token};
  options.allow_metered = options_.allow_metered;
  options.keep_free_bytes = options_.keep_free_bytes;
  const std::optional<Manifest> manifest = read_manifest(path_);
  if (!url_.empty() && manifest && manifest->url == url_ && manifest->bytes == size_of(path_)) {
    if (!options_.sha256.empty() && manifest->sha256 == options_.sha256) {
      is_done_ = true;
      bytes_ = manifest->bytes;
      return {};
    }
    if (options_.sha256.empty()) options.unchanged_etag = manifest->commit;
  }
  MOTE_ASSIGN(Part part, Part::open(wanted));
  transfer_.emplace(std::move(part), std::move(options), is_metered_);
  return {};
}

// Where it came from is noted after the file has its name: a crash between the two costs a download, no wrong note.
Status Download::finish() {
  Part& part = transfer_->part();
  if (transfer_->is_unchanged()) {
    bytes_ = *size_of(path_);
    is_done_ = true;
    part.drop();
    return {};
  }
  MOTE_RETURN_IF_ERROR(part.commit());
  MOTE_RETURN_IF_ERROR(record(path_, {.repo = name_.repo,
                                      .revision = name_.revision,
                                      .commit = lookup_ ? lookup_->listing().commit : part.etag(),
                                      .file = file_,
                                      .source = "download",
                                      .sha256 = part.sha256(),
                                      .license = lookup_ ? lookup_->listing().license : "",
                                      .url = url_}));
  part.finish();
  bytes_ = part.total();
  is_done_ = is_new_ = true;
  return {};
}

}  // namespace mote::store
