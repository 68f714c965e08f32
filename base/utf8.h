// UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Replacement is what Python
// does with errors="replace": every maximal ill-formed part becomes one U+FFFD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mote {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

enum class Utf8Kind { kValid, kInvalid, kIncomplete };

// What the first character of a text, which is not empty, is. kIncomplete: the whole text is the beginning of a
// character that more bytes could complete.
struct Utf8Character {
  Utf8Kind kind = Utf8Kind::kInvalid;
  size_t length = 0;        // bytes that it takes of the text, at least 1
  char32_t code_point = 0;  // kValid only
};
Utf8Character first_utf8_character(std::string_view text);

// Bytes of the longest prefix of `text` that is whole, valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);

inline bool is_valid_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

// Bytes (0..3) at the end of `text` that begin a sequence which further bytes could still complete. A stream of text
// holds them back.
size_t incomplete_utf8_suffix(std::string_view text);

// `text` with each ill-formed part replaced.
std::string replace_invalid_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t code_point);

}  // namespace mote
