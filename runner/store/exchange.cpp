#include "runner/store/exchange.h"

#include <algorithm>
#include <utility>

#include "runner/store/http.h"

namespace mote::store {
namespace {

constexpr int kMaxTries = 5;
constexpr int64_t kFirstWaitMs = 1000;
constexpr int64_t kMaxWaitMs = 10 * 60 * 1000;

}  // namespace

std::string Access::headers(std::string_view url) const {
  std::string lines = "Accept-Encoding: identity\r\n";
  const std::optional<Url> to = parse_url(url);
  if (!token.empty() && to && to->origin() == origin) lines += "Authorization: Bearer " + token + "\r\n";
  return lines;
}

Status Retries::again(const std::string& what, const std::string& reason, int64_t wait_s, bool brought_something) {
  num_tries_ = brought_something ? 0 : num_tries_ + 1;
  const int64_t own_ms = num_tries_ == 0 ? 0 : kFirstWaitMs << (num_tries_ - 1);
  const bool is_too_long = wait_s > kMaxWaitMs / 1000;
  const std::string asks =
      is_too_long ? format("; it asks to come again in %lld s", static_cast<long long>(wait_s)) : "";
  MOTE_REQUIRE(num_tries_ < kMaxTries && !is_too_long, Code::kFileUnreadable, "%s (%s%s)", what.c_str(), reason.c_str(),
               asks.c_str());
  wait_ = {.kind = Step::Kind::kWait, .wait_ms = std::max(own_ms, wait_s * 1000), .reason = reason};
  return {};
}

std::optional<Step> Retries::take_wait() {
  if (wait_.wait_ms == 0) return std::nullopt;
  return std::exchange(wait_, {});
}

}  // namespace mote::store
