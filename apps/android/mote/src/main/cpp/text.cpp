#include "apps/android/mote/src/main/cpp/text.h"

#include <cstdint>

namespace mote::java {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_high(char32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(char32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

void append_utf8(char32_t c, std::string& out) {
  const auto add = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      add(0xE0 | (c >> 12));
    } else {
      add(0xF0 | (c >> 18));
      add(0x80 | ((c >> 12) & 0x3F));
    }
    add(0x80 | ((c >> 6) & 0x3F));
  }
  add(0x80 | (c & 0x3F));
}

void append_utf16(char32_t c, std::u16string& out) {
  if (c < 0x10000) return out.push_back(static_cast<char16_t>(c));
  out.push_back(static_cast<char16_t>(0xD7C0 + (c >> 10)));
  out.push_back(static_cast<char16_t>(0xDC00 | (c & 0x3FF)));
}

// How many bytes follow the first one of a character; -1: it is none.
int num_following(uint8_t first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  return first >= 0xF0 && first < 0xF5 ? 3 : -1;
}

// The character at the beginning of a text, which loses it; of an ill-formed one its first byte.
char32_t take_character(std::string_view& text) {
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<uint8_t>(text[0]);
  const int following = num_following(first);
  const std::string_view rest = text.substr(1);
  text.remove_prefix(1);
  if (following < 0 || rest.size() < static_cast<size_t>(following)) return kReplacement;
  char32_t c = following == 0 ? first : first & (0x3Fu >> following);
  for (size_t i = 0; i < static_cast<size_t>(following); ++i) {
    const auto byte = static_cast<uint8_t>(rest[i]);
    if ((byte & 0xC0) != 0x80) return kReplacement;
    c = c << 6 | (byte & 0x3F);
  }
  if (c < kSmallest[following] || c > 0x10FFFF || is_high(c) || is_low(c)) return kReplacement;
  text.remove_prefix(static_cast<size_t>(following));
  return c;
}

}  // namespace

std::string utf8_of(std::u16string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char32_t c = text[i];
    if (is_high(c) && i + 1 < text.size() && is_low(text[i + 1])) {
      c = 0x10000 + ((c & 0x3FF) << 10 | (text[++i] & 0x3FFu));
    } else if (is_high(c) || is_low(c)) {
      c = kReplacement;
    }
    append_utf8(c, out);
  }
  return out;
}

std::u16string utf16_of(std::string_view text) {
  std::u16string out;
  out.reserve(text.size());
  while (!text.empty()) append_utf16(take_character(text), out);
  return out;
}

}  // namespace mote::java
