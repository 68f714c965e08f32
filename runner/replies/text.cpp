#include "runner/replies/text.h"

#include <array>
#include <cstdio>

namespace mote::reply {

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

void append_json_escaped(std::string& json, char c) {
  switch (c) {
    case '"': json += "\\\""; return;
    case '\\': json += "\\\\"; return;
    case '\n': json += "\\n"; return;
    case '\r': json += "\\r"; return;
    case '\t': json += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) >= 0x20) {
    json += c;
    return;
  }
  std::array<char, 8> escaped{};
  std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
  json += escaped.data();
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) append_json_escaped(json, c);
  return json + "\"";
}

bool is_name_character(char c) {
  constexpr std::string_view kRefused = "\"'`<>{}()[],;=\\\x7F";
  return static_cast<unsigned char>(c) > 0x20 && kRefused.find(c) == std::string_view::npos;
}

}  // namespace mote::reply
