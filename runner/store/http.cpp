#include "runner/store/http.h"

#include <algorithm>

#include "base/status.h"

namespace mote::store {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

std::optional<Url> parse_url(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == text.npos || !std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; }))
    return std::nullopt;
  Url url;
  std::ranges::transform(text.substr(0, colon), std::back_inserter(url.scheme), lower);
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  const std::string_view rest = text.substr(colon + 3);
  const size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  std::ranges::transform(rest.substr(0, slash), std::back_inserter(url.host), lower);
  if (url.host.empty() || url.host.find('@') != url.host.npos)
    return std::nullopt;  // a password would be kept in files
  url.path = rest.substr(slash);
  if (!url.path.starts_with('/')) url.path.insert(0, "/");
  url.path.resize(std::min(url.path.find('#'), url.path.size()));
  return url;
}

std::string origin_of(std::string_view url) {
  const std::optional<Url> parsed = parse_url(url);
  return parsed ? parsed->origin() : "";
}

std::optional<std::string> follow(std::string_view from, std::string_view location) {
  const std::optional<Url> base = parse_url(from);
  if (!base || location.empty()) return std::nullopt;
  std::string target(location);
  const size_t colon = location.find(':');
  const bool is_absolute = colon != location.npos && location.find_first_of("/?#") > colon;
  if (location.starts_with("//")) {
    target = base->scheme + ":" + target;
  } else if (location.starts_with('/')) {
    target = base->origin() + target;
  } else if (!is_absolute) {
    const std::string path = base->path.substr(0, base->path.find('?'));
    target = base->origin() + path.substr(0, path.rfind('/') + 1) + target;
  }
  const std::optional<Url> url = parse_url(target);
  if (!url || (base->scheme == "https" && url->scheme != "https")) return std::nullopt;
  return url->origin() + url->path;
}

std::string_view Headers::find(std::string_view name) const {
  std::string_view left = lines_;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const size_t colon = line.find(':');
    if (colon != line.npos && same_letters(trimmed(line.substr(0, colon)), name))
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

std::optional<int64_t> parse_count(std::string_view text) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  int64_t count = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || count > kLargest / 10 - 1) return std::nullopt;
    count = count * 10 + (c - '0');
  }
  return text.empty() ? std::nullopt : std::optional(count);
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (text.size() < kUnit.size() || !same_letters(text.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == text.npos || slash == text.npos || slash < dash) return std::nullopt;
  const auto first = parse_count(trimmed(text.substr(0, dash)));
  const auto last = parse_count(trimmed(text.substr(dash + 1, slash - dash - 1)));
  const std::string_view total_text = trimmed(text.substr(slash + 1));
  const auto total = total_text == "*" ? std::optional<int64_t>(-1) : parse_count(total_text);
  if (!first || !last || !total || *first > *last || (*total >= 0 && *last >= *total)) return std::nullopt;
  return ContentRange{*first, *last, *total};
}

std::string human_bytes(int64_t count) {
  auto size = static_cast<double>(count);
  if (size < 1000) return format("%.0f B", size);
  for (const char* unit : {"kB", "MB"}) {
    size /= 1000;
    if (size < 1000) return format("%.1f %s", size, unit);
  }
  return format("%.2f GB", size / 1000);
}

}  // namespace mote::store
