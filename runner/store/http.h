// What the store reads and writes of HTTP, as text: it has no network of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mote::store {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // with the port, if there is one
  std::string path;    // "/" and what follows, the query too

  std::string origin() const { return scheme + "://" + host; }
};

// Nothing: it is no URL of HTTP, or has characters that none has.
std::optional<Url> parse_url(std::string_view text);
// "" of what is no URL.
std::string origin_of(std::string_view url);
// Where a Location of an answer leads. Nothing: nowhere, or from HTTPS to HTTP.
std::optional<std::string> follow(std::string_view from, std::string_view location);

// The header of an answer: lines of "Name: value". Lifetime: not longer than the text.
class Headers {
 public:
  explicit Headers(std::string_view lines) : lines_(lines) {}
  // The value of the first one of that name, of any case; "": there is none.
  std::string_view find(std::string_view name) const;

 private:
  std::string_view lines_;
};

// Digits alone, below 2^62.
std::optional<int64_t> parse_count(std::string_view text);

struct ContentRange {
  int64_t first = 0;
  int64_t last = 0;
  int64_t total = -1;  // -1: not told
};
// Of "bytes 0-99/1000"; nothing: it is none, or no such range can be.
std::optional<ContentRange> parse_content_range(std::string_view text);

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// "4.7 MB"
std::string human_bytes(int64_t count);

}  // namespace mote::store
