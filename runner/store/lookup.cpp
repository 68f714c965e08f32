#include "runner/store/lookup.h"

#include <utility>

#include "base/closest.h"
#include "runner/store/answer.h"
#include "runner/store/http.h"

namespace mote::store {
namespace {

constexpr size_t kMostBodyBytes = size_t{64} << 20;

}  // namespace

Lookup::Lookup(const std::string& endpoint, const std::string& token, Name name)
    : endpoint_(endpoint), access_{origin_of(endpoint), token}, name_(std::move(name)), url_(first_url(Stage::kList)) {}

std::string Lookup::first_url(Stage stage) const {
  const std::string models = endpoint_ + "/api/models";
  const size_t slash = name_.repo.find('/');
  switch (stage) {
    case Stage::kSearchOwner: return models + "?limit=100&author=" + quote(name_.repo.substr(0, slash));
    case Stage::kSearchModel: return models + "?limit=100&search=" + quote(name_.repo.substr(slash + 1));
    default: break;
  }
  const std::string revision = name_.revision.empty() ? "" : "/revision/" + quote(name_.revision);
  return models + "/" + name_.repo + revision + "?blobs=true";
}

Result<Step> Lookup::next() {
  if (stage_ == Stage::kDone) return Step{};
  if (std::optional<Step> wait = retries_.take_wait()) return *std::move(wait);
  outcome_ = Outcome::kNothing;
  body_.clear();
  return Step{.kind = Step::Kind::kRequest, .url = url_, .headers = access_.headers(url_)};
}

Result<bool> Lookup::respond(int status, std::string_view headers) {
  const Headers found(headers);
  const Verdict verdict = judge({.url = url_}, status, found);
  const bool is_body = verdict.kind == Verdict::Kind::kBody;
  outcome_ = is_body ? Outcome::kBody : Outcome::kGoOn;
  if (is_body) return true;
  if (verdict.kind == Verdict::Kind::kRedirect && ++num_redirects_ <= kMaxRedirects) {
    url_ = verdict.url;
  } else if (stage_ != Stage::kList) {
    outcome_ = Outcome::kNothing;  // a suggestion is worth no error of its own
  } else if (verdict.kind == Verdict::Kind::kAgain) {
    MOTE_RETURN_IF_ERROR(retries_.again(name_.repo + ": the hub cannot answer", verdict.reason, verdict.wait_s, false));
  } else {
    MOTE_RETURN_IF_ERROR(refuse(status, found.find("X-Error-Code")));
  }
  return false;
}

Status Lookup::refuse(int status, std::string_view error_code) {
  MOTE_REQUIRE(error_code != "GatedRepo", Code::kFileUnreadable,
               "%s: is gated: accept its terms on its page of the hub, then give your token in HF_TOKEN or by 'hf auth "
               "login'",
               name_.repo.c_str());
  MOTE_REQUIRE(error_code != "RevisionNotFound", Code::kFileNotFound, "%s: has no revision '%s'", name_.repo.c_str(),
               name_.revision.c_str());
  // The hub does not tell what is private from what is not there.
  const bool is_absent = error_code == "RepoNotFound" || (error_code.empty() && (status == 401 || status == 404));
  MOTE_REQUIRE(is_absent, Code::kFileUnreadable, "%s: %s", name_.repo.c_str(), refusal("the hub", status).c_str());
  stage_ = Stage::kSearchOwner;
  url_ = first_url(stage_);
  return {};
}

Status Lookup::write(std::span<const std::byte> bytes) {
  if (outcome_ != Outcome::kBody) return {};
  MOTE_REQUIRE(body_.size() + bytes.size() <= kMostBodyBytes, Code::kFileUnreadable,
               "%s: the hub's answer is longer than any list of files", name_.repo.c_str());
  body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {};
}

Status Lookup::end(std::string_view broken) {
  if (outcome_ == Outcome::kGoOn) return {};
  if (stage_ != Stage::kList) return end_search();
  MOTE_REQUIRE(broken.empty(), Code::kFileUnreadable,
               "%s: the hub at %s cannot be reached (%s); models that 'mote list' shows need no network",
               name_.text().c_str(), endpoint_.c_str(), std::string(broken).c_str());
  MOTE_ASSIGN(listing_, parse_listing(body_, name_.repo));
  stage_ = Stage::kDone;
  return {};
}

Status Lookup::end_search() {
  for (std::string& name : parse_search(body_)) known_.push_back(std::move(name));
  if (stage_ == Stage::kSearchOwner) {
    stage_ = Stage::kSearchModel;
    url_ = first_url(stage_);
    return {};
  }
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  const std::string suggestion = did_you_mean(name_.repo, known);
  return {Code::kFileNotFound,
          format("the hub has no model '%s'%s There is no such file here either. If it is private, give your token in "
                 "HF_TOKEN or by 'hf auth login'",
                 name_.repo.c_str(), suggestion.empty() ? "." : suggestion.c_str())};
}

}  // namespace mote::store
