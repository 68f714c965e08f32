#include "runner/store/transfer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/path.h"
#include "base/replacement.h"
#include "runner/program/mapped.h"
#include "runner/store/check.h"

namespace mote::store {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxRestarts = 5;

std::string start_of(const std::string& hash) { return hash.substr(0, 12) + "..."; }

}  // namespace

Transfer::Transfer(Part part, TransferOptions options, const std::atomic<bool>& is_metered)
    : part_(std::move(part)),
      options_(std::move(options)),
      access_{origin_of(options_.url), options_.token},
      is_metered_(is_metered),
      url_(options_.url) {}

Status Transfer::check_metered() const {
  const int64_t left = part_.total() < 0 ? -1 : part_.total() - part_.bytes();
  MOTE_REQUIRE(!is_metered_ || options_.allow_metered || left == 0, Code::kInvalidState,
               "%s: %s would come over a network that is metered, which was not allowed; it goes on where the network "
               "is another one",
               options_.name.c_str(), left < 0 ? "a file" : human_bytes(left).c_str());
  return {};
}

Status Transfer::check_room() const {
  const std::string folder = folder_of(to_path(part_.wanted().path));
  std::error_code error;
  const fs::space_info space = fs::space(to_path(folder), error);
  const auto free = error ? INT64_MAX : static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
  const int64_t needed = part_.total() - part_.bytes();
  MOTE_REQUIRE(
      needed <= 0 || needed <= free - options_.keep_free_bytes, Code::kFileUnwritable,
      "%s: needs %s more in %s, where %s are free: 'mote list' and 'mote rm' make room, MOTE_HOME=FOLDER moves "
      "the store",
      options_.name.c_str(), human_bytes(needed).c_str(), folder.c_str(), human_bytes(free).c_str());
  return {};
}

void Transfer::back_to_start() {
  url_ = options_.url;
  num_redirects_ = 0;
}

// What an answer has said of the file binds nobody where nothing of it is kept.
Status Transfer::begin_anew() {
  program_end_ = num_checked_ = 0;
  return part_.restart();
}

// A file that proved to be wrong is not kept.
Status Transfer::dropped(Status status) {
  part_.drop();
  return status;
}

// Asks, as early as the bytes tell it, whether the file can be run here.
Status Transfer::check_start() {
  const auto have = static_cast<uint64_t>(part_.bytes());
  const bool is_over = part_.is_complete();
  if (program_end_ == 0 && (have >= kHeaderBytes || is_over)) {
    MOTE_ASSIGN(const std::vector<std::byte> first, part_.first_bytes(kHeaderBytes));
    const Result<FileSizes> sizes = file_sizes(shown(), first);
    if (!sizes.ok()) return dropped(sizes.status());
    const auto file_bytes = static_cast<int64_t>(sizes->file_bytes);
    if (part_.total() < 0) MOTE_RETURN_IF_ERROR(part_.note(part_.etag(), file_bytes));
    if (part_.total() != file_bytes) {
      return dropped(
          {Code::kInvalidProgram,
           format("%s: file_bytes = %lld: the file has %lld bytes, so it was truncated or appended to", shown().c_str(),
                  static_cast<long long>(file_bytes), static_cast<long long>(part_.total()))});
    }
    program_end_ = kHeaderBytes + sizes->program_bytes;
  }
  if (program_end_ == 0 || have < program_end_ || num_checked_ == program_end_) return {};
  num_checked_ = program_end_;
  MOTE_ASSIGN(const std::vector<std::byte> first, part_.first_bytes(program_end_));
  const Status status = check_program(shown(), first, part_.total());
  return status.ok() ? status : dropped(status);
}

// Without a hash the checksums in the file tell whether it is whole; no part of it is without one.
Status Transfer::check_hash() {
  MOTE_RETURN_IF_ERROR(part_.flush());
  const Wanted& wanted = part_.wanted();
  const std::string& expected = wanted.sha256.empty() ? wanted.blob_id : wanted.sha256;
  const std::string found = wanted.sha256.empty() ? part_.blob_id() : part_.sha256();
  if (!expected.empty() && found != expected) {
    return dropped(
        {Code::kFileUnreadable, format("%s arrived damaged: its hash is %s, not %s; what came was deleted, try again",
                                       shown().c_str(), start_of(found).c_str(), start_of(expected).c_str())});
  }
  if (expected.empty()) {
    const Status status = check_contents(wanted.path + ".part");
    if (!status.ok())
      return dropped({status.code(), "arrived damaged and was deleted, try again: " + status.message()});
  }
  is_verified_ = true;
  return {};
}

Result<Step> Transfer::next() {
  if (is_unchanged_ || is_verified_) return Step{};
  if (!std::exchange(has_room_, true)) MOTE_RETURN_IF_ERROR(check_room());
  MOTE_ASSIGN(const bool is_hashing, part_.hash_some());
  if (is_hashing) return Step{.kind = Step::Kind::kWait, .reason = shown() + ": what has come is checked"};
  MOTE_RETURN_IF_ERROR(check_start());
  if (part_.is_complete()) {
    MOTE_RETURN_IF_ERROR(check_hash());
    return Step{};
  }
  MOTE_RETURN_IF_ERROR(check_metered());
  if (std::optional<Step> wait = retries_.take_wait()) return *std::move(wait);
  if (part_.bytes() == 0) MOTE_RETURN_IF_ERROR(begin_anew());
  bytes_before_ = part_.bytes();
  answer_.reset();
  complaint_.clear();
  is_followed_up_ = false;
  Step step{.kind = Step::Kind::kRequest, .url = url_, .headers = access_.headers(url_)};
  if (bytes_before_ > 0) {
    step.headers += "Range: bytes=" + std::to_string(bytes_before_) + "-\r\n";
    if (!part_.etag().empty()) step.headers += "If-Range: " + part_.etag() + "\r\n";
  } else if (!options_.unchanged_etag.empty()) {
    step.headers += "If-None-Match: " + options_.unchanged_etag + "\r\n";
  }
  return step;
}

Result<bool> Transfer::respond(int status, std::string_view headers) {
  const Verdict verdict = judge({url_, bytes_before_, part_.total(), part_.etag()}, status, Headers(headers));
  using Kind = Verdict::Kind;
  is_followed_up_ = verdict.kind != Kind::kBody;
  const bool was_redirected = url_ != options_.url;
  if (verdict.kind != Kind::kRedirect && verdict.kind != Kind::kBody) back_to_start();
  if (verdict.kind == Kind::kRedirect) {
    MOTE_REQUIRE(++num_redirects_ <= kMaxRedirects, Code::kFileUnreadable,
                 "%s: is sent from one place to another for ever", shown().c_str());
    url_ = verdict.url;
  } else if (verdict.kind == Kind::kUnchanged && !options_.unchanged_etag.empty() && bytes_before_ == 0) {
    is_unchanged_ = true;
  } else if (verdict.kind == Kind::kAgain) {
    MOTE_RETURN_IF_ERROR(again(verdict.reason, verdict.wait_s));
  } else if (verdict.kind == Kind::kRestart) {
    MOTE_RETURN_IF_ERROR(restart(verdict.reason));
  } else if (verdict.kind == Kind::kBody) {
    if (verdict.from == 0 && bytes_before_ > 0) MOTE_RETURN_IF_ERROR(restart("the file has changed meanwhile"));
    MOTE_RETURN_IF_ERROR(part_.note(verdict.etag, verdict.total));
    answer_ = verdict;
    MOTE_RETURN_IF_ERROR(check_room());
    return true;
  } else if (was_redirected) {  // such an address may have been good for a while only
    MOTE_RETURN_IF_ERROR(again(verdict.reason));
  } else {
    return Status(status == 404 ? Code::kFileNotFound : Code::kFileUnreadable, shown() + ": " + verdict.reason);
  }
  return false;
}

Status Transfer::write(std::span<const std::byte> bytes) {
  if (!answer_ || !complaint_.empty()) return {};
  MOTE_RETURN_IF_ERROR(check_metered());
  if (answer_->to >= 0 && static_cast<int64_t>(bytes.size()) > answer_->to - part_.bytes()) {
    complaint_ = "the server sends more than it said";
    return {};
  }
  MOTE_RETURN_IF_ERROR(part_.append(bytes));
  return check_start();
}

Status Transfer::end(std::string_view broken) {
  if (std::exchange(is_followed_up_, false)) return {};
  const std::optional<Verdict> answer = std::exchange(answer_, std::nullopt);
  back_to_start();
  MOTE_RETURN_IF_ERROR(part_.flush());
  if (!complaint_.empty()) {
    program_end_ = num_checked_ = 0;
    MOTE_RETURN_IF_ERROR(part_.truncate(answer->from));
    return again(complaint_);
  }
  if (part_.is_complete()) return {};
  if (broken.empty() && answer && answer->to < 0 && part_.total() < 0)  // nothing but its end tells where it ends
    return part_.note(answer->etag, part_.bytes());
  const bool is_as_said = broken.empty() && answer && part_.bytes() == answer->to;
  return again(!broken.empty() ? std::string(broken) : is_as_said ? "" : "the server sent less than the file has");
}

Status Transfer::restart(const std::string& reason) {
  MOTE_REQUIRE(++num_restarts_ <= kMaxRestarts, Code::kFileUnreadable, "%s: changes while it comes (%s); try later",
               shown().c_str(), reason.c_str());
  return begin_anew();
}

Status Transfer::again(const std::string& reason, int64_t wait_s) {
  const std::string so_far =
      part_.total() < 0 ? human_bytes(part_.bytes()) : human_bytes(part_.bytes()) + " of " + human_bytes(part_.total());
  return retries_.again(shown() + " broke off at " + so_far + "; begun again it goes on from there", reason, wait_s,
                        part_.bytes() > bytes_before_);
}

}  // namespace mote::store
