#include "runner/store/names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/status.h"
#include "runner/store/http.h"

namespace mote::store {
namespace {

constexpr std::array<std::string_view, 2> kDefaultTags = {"8da4w", "Q4_K_M"};  // the second of GGUF files
constexpr std::string_view kMote = ".mote";

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool is_word(char c) { return is_letter_or_digit(c) || c == '_'; }
// Whether `text` begins with a word's character, or one of `first`, and goes on with those or `rest`.
bool matches(std::string_view text, std::string_view first, std::string_view rest) {
  if (text.empty() || !(is_word(text[0]) || first.find(text[0]) != text.npos)) return false;
  return std::ranges::all_of(text, [&](char c) { return is_word(c) || rest.find(c) != rest.npos; });
}

bool is_repo(std::string_view repo) {
  const size_t slash = repo.find('/');
  if (slash == repo.npos || repo.ends_with(kMote) || repo.ends_with(".git")) return false;
  const std::string_view owner = repo.substr(0, slash);
  return matches(owner, "", ".-") && owner[0] != '_' && matches(repo.substr(slash + 1), "", ".-");
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view stem(std::string_view path) {
  const std::string_view name = file_name(path);
  const size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? name : name.substr(0, dot);
}

bool has_word(std::string_view text, std::string_view word) {
  constexpr std::string_view kBorders = "-_.";
  const auto is_border = [&](size_t at) { return at >= text.size() || kBorders.find(text[at]) != kBorders.npos; };
  for (size_t at = 0; at + word.size() <= text.size(); ++at) {
    const bool is_same =
        std::ranges::equal(text.substr(at, word.size()), word, [](char a, char b) { return lower(a) == lower(b); });
    if (is_same && (at == 0 || is_border(at - 1)) && is_border(at + word.size())) return true;
  }
  return false;
}

// A part of an URL's path as a part of a name.
std::string as_part(std::string_view text) {
  std::string part = unquote(text);
  std::ranges::replace_if(part, [](char c) { return !is_word(c) && c != '.' && c != '-'; }, '_');
  for (size_t at; (at = part.find("..")) != part.npos;) part[at] = '_';
  if (!part.empty() && !is_letter_or_digit(part[0])) part[0] = '0';
  return part;
}

}  // namespace

std::optional<Name> parse_name(std::string_view text) {
  if (text.find("..") != text.npos) return std::nullopt;
  Name name;
  std::string_view model = text;
  if (const size_t colon = text.find(':'); colon != text.npos) {
    model = text.substr(0, colon);
    if (!matches(text.substr(colon + 1), ".+", "./+-")) return std::nullopt;
    name.tag = text.substr(colon + 1);
    while (name.tag.ends_with(".gguf")) name.tag = without_suffix(name.tag, ".gguf");
  }
  const size_t at = model.find('@');
  name.repo = model.substr(0, at);
  if (at != model.npos) {
    if (!matches(model.substr(at + 1), ".", "./-")) return std::nullopt;
    name.revision = model.substr(at + 1);
  }
  return is_repo(name.repo) ? std::optional(name) : std::nullopt;
}

Result<Name> require_name(std::string_view text) {
  const std::optional<Name> name = parse_name(text);
  MOTE_REQUIRE(name.has_value(), Code::kInvalidArgument, "'%s': must be org/name, org/name:file or org/name@revision",
               std::string(text).c_str());
  return *name;
}

std::optional<Name> name_of_url(std::string_view url) {
  const std::optional<Url> parsed = parse_url(url);
  if (!parsed) return std::nullopt;
  std::vector<std::string> parts;
  const std::string_view path = std::string_view(parsed->path).substr(0, parsed->path.find_first_of("?#"));
  for (size_t begin = 1; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(as_part(path.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (parts.empty() || path.ends_with('/')) return std::nullopt;
  Name name;
  const std::string host = as_part(std::string_view(parsed->host).substr(0, parsed->host.find(':')));
  parts.back() = without_suffix(parts.back(), kMote);
  name.repo = host + "/" + std::string(without_suffix(without_suffix(parts[0], ".git"), kMote));
  for (size_t i = parts.size() == 1 ? 0 : 1; i < parts.size(); ++i)
    name.tag += (name.tag.empty() ? "" : "/") + parts[i];
  return parse_name(name.text());
}

std::optional<std::string> choose(std::span<const std::string> files, std::string_view tag) {
  if (tag.empty()) {
    if (files.size() == 1) return files[0];
    for (const std::string_view common : kDefaultTags) {
      if (auto chosen = choose(files, common)) return chosen;
    }
    return std::nullopt;
  }
  std::vector<std::string> exact, by_word;
  for (const std::string& file : files) {
    if (tag == file || tag == without_suffix(file, kMote) || tag == file_name(file)) exact.push_back(file);
    if (has_word(stem(file), tag)) by_word.push_back(file);
  }
  const std::vector<std::string>& found = exact.empty() ? by_word : exact;
  return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
}

bool is_safe(std::string_view path) {
  if (path.find('\\') != path.npos || path.find('\0') != path.npos || path.find(':') != path.npos) return false;
  while (true) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  return text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

std::string quote(std::string_view text, std::string_view kept) {
  std::string quoted;
  for (const char c : text) {
    const bool is_kept = is_word(c) || c == '.' || c == '-' || c == '~' || kept.find(c) != kept.npos;
    quoted += is_kept ? std::string(1, c) : format("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return quoted;
}

std::string unquote(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
  };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    plain += is_code ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (is_code) i += 2;
  }
  return plain;
}

}  // namespace mote::store
