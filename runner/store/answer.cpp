#include "runner/store/answer.h"

#include "base/status.h"

namespace mote::store {
namespace {

using Kind = Verdict::Kind;

constexpr int kOk = 200, kPartial = 206, kUnchanged = 304, kBadRange = 416;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// A server that may answer otherwise soon.
bool is_busy(int status) { return status == 408 || status == 429 || (status >= 502 && status <= 504); }

std::string strong(std::string_view etag) {
  const bool is_strong = etag.size() > 2 && etag.front() == '"' && etag.back() == '"';
  return is_strong ? std::string(etag) : "";
}

Verdict again(std::string reason, int64_t wait_s = 0) {
  Verdict verdict;
  verdict.kind = Kind::kAgain;
  verdict.wait_s = wait_s;
  verdict.reason = std::move(reason);
  return verdict;
}

Verdict of_kind(Kind kind, std::string reason) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.reason = std::move(reason);
  return verdict;
}

std::string number(int64_t value) { return std::to_string(value); }

Verdict judge_whole(const Asked& asked, const Headers& headers) {
  const std::optional<int64_t> length = parse_count(headers.find("Content-Length"));
  if (length && asked.total >= 0 && *length != asked.total) {
    const std::string sizes = "the server sends " + number(*length) + " bytes of a file of " + number(asked.total);
    // An answer in place of a range says that the file is another one.
    return asked.have > 0 ? of_kind(Kind::kRestart, sizes) : again(sizes);
  }
  Verdict verdict;
  verdict.kind = Kind::kBody;
  verdict.total = asked.total >= 0 ? asked.total : length.value_or(-1);
  verdict.to = verdict.total;
  verdict.etag = strong(headers.find("ETag"));
  return verdict;
}

Verdict judge_part(const Asked& asked, const Headers& headers) {
  const std::optional<ContentRange> range = parse_content_range(headers.find("Content-Range"));
  if (!range) return again("the server sends a part and does not say which");
  const std::string etag = strong(headers.find("ETag"));
  if (!asked.etag.empty() && !etag.empty() && etag != asked.etag)
    return of_kind(Kind::kRestart, "the file has changed meanwhile");
  if (range->total >= 0 && asked.total >= 0 && range->total != asked.total)
    return of_kind(Kind::kRestart, "the file has another size by now");
  if (range->first != asked.have)
    return again("the server sends bytes from " + number(range->first) + " on in place of " + number(asked.have));
  if (asked.total >= 0 && range->last >= asked.total) return again("the server sends bytes that the file has not");
  const std::optional<int64_t> length = parse_count(headers.find("Content-Length"));
  if (length && *length != range->last - range->first + 1)
    return again("the server's Content-Range and Content-Length disagree");
  Verdict verdict;
  verdict.kind = Kind::kBody;
  verdict.from = range->first;
  verdict.to = range->last + 1;
  verdict.total = asked.total >= 0 ? asked.total : range->total;
  verdict.etag = etag.empty() ? asked.etag : etag;
  return verdict;
}

}  // namespace

Verdict judge(const Asked& asked, int status, const Headers& headers) {
  if (is_redirect(status)) {
    Verdict verdict = of_kind(Kind::kRefused, "the server sends it elsewhere, and that is no place to go to");
    const std::optional<std::string> url = follow(asked.url, headers.find("Location"));
    if (url) {
      verdict.kind = Kind::kRedirect;
      verdict.url = *url;
    }
    return verdict;
  }
  if (is_busy(status))
    return again(format("the server answers with status %d", status),
                 parse_count(headers.find("Retry-After")).value_or(0));
  if (status == kUnchanged) return of_kind(Kind::kUnchanged, "");
  if (status == kBadRange && asked.have > 0) return of_kind(Kind::kRestart, "the file has become shorter");
  if (status != kOk && status != kPartial) return of_kind(Kind::kRefused, refusal("the server", status));
  const std::string_view encoding = headers.find("Content-Encoding");
  if (!encoding.empty() && encoding != "identity")
    return of_kind(Kind::kRefused, "the server sends it encoded as " + std::string(encoding) + ", and not as it is");
  return status == kOk ? judge_whole(asked, headers) : judge_part(asked, headers);
}

std::string refusal(const char* who, int status) {
  const char* hint = status == 401   ? ": give a token in HF_TOKEN or by 'hf auth login'"
                     : status == 403 ? ": the token has no right to it"
                                     : "";
  return format("%s refuses it with status %d%s", who, status, hint);
}

}  // namespace mote::store
