#include "apps/android/mote/src/main/cpp/text.h"

#include "base/utf8.h"

namespace mote::java {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_high(char32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(char32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

void append_utf16(char32_t c, std::u16string& out) {
  if (c < 0x10000) return out.push_back(static_cast<char16_t>(c));
  out.push_back(static_cast<char16_t>(0xD7C0 + (c >> 10)));
  out.push_back(static_cast<char16_t>(0xDC00 | (c & 0x3FF)));
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
    append_utf8(out, c);
  }
  return out;
}

std::u16string utf16_of(std::string_view text) {
  std::u16string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character first = first_utf8_character(text);
    const bool is_valid = first.kind == Utf8Kind::kValid;
    append_utf16(is_valid ? first.code_point : kReplacement, out);
    text.remove_prefix(is_valid ? first.length : 1);  // of what is ill-formed, each byte is replaced
  }
  return out;
}

}  // namespace mote::java
