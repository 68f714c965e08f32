#include "runner/templates/characters.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace mote::jinja {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// The full case folding; its length is 1 for most.
struct Folded {
  utf8proc_int32_t codes[8] = {};
  size_t length = 0;
};

Folded fold(char32_t c) {
  Folded folded;
  int boundary = 0;
  const utf8proc_ssize_t length =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded.codes, 8, UTF8PROC_CASEFOLD, &boundary);
  folded.length = length > 0 && length <= 8 ? static_cast<size_t>(length) : 0;
  return folded;
}

void append(std::string& text, utf8proc_int32_t c) { append_utf8(text, static_cast<char32_t>(c)); }

constexpr char32_t kCapitalIWithDot = 0x130;
constexpr char32_t kApostropheN = 0x149;
constexpr utf8proc_int32_t kCapitalSharpS = 0x1E9E;  // what utf8proc makes of a sharp s, for which Python writes Ss

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_alpha(char32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  const utf8proc_category_t found = category(c);
  return found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit_character(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490);
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return is_decimal(c);
  const utf8proc_category_t found = category(c);
  return found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL || found == UTF8PROC_CATEGORY_NO;
}

bool is_alphanumeric(char32_t c) { return is_alpha(c) || is_numeric(c); }

bool is_title(char32_t c) { return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT; }

bool is_upper(char32_t c) { return c < 0x80 ? c >= 'A' && c <= 'Z' : category(c) == UTF8PROC_CATEGORY_LU; }

bool is_lower(char32_t c) {
  return c < 0x80 ? c >= 'a' && c <= 'z' : category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA;
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

bool is_case_ignorable(char32_t c) {
  if (c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xB7 || c == 0x2019) return true;
  if (c < 0x80) return false;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return false;
  }
}

void append_upper(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    return;
  }
  if (is_upper(c)) return append_utf8(text, c);
  const Folded folded = fold(c);
  if (folded.length > 1) {
    for (size_t i = 0; i < folded.length; ++i) append(text, utf8proc_toupper(folded.codes[i]));
  } else {
    append(text, utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
  }
}

void append_title(std::string& text, char32_t c) {
  if (c < 0x80) return append_upper(text, c);
  const auto code = static_cast<utf8proc_int32_t>(c);
  if (c == kApostropheN) return append_upper(text, c);
  const utf8proc_int32_t title = utf8proc_totitle(code);
  if ((title != code && title != kCapitalSharpS) || is_upper(c) || is_title(c)) return append(text, title);
  const Folded folded = fold(c);
  if (folded.length <= 1) return append_utf8(text, c);
  append(text, utf8proc_toupper(folded.codes[0]));
  for (size_t i = 1; i < folded.length; ++i) append(text, folded.codes[i]);
}

void append_lower(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == kCapitalIWithDot) {
    text += "i\xCC\x87";
  } else {
    append(text, utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  }
}

void append_folded(std::string& text, char32_t c) {
  if (c < 0x80) return append_lower(text, c);
  const Folded folded = fold(c);
  for (size_t i = 0; i < folded.length; ++i) append(text, folded.codes[i]);
}

Character character_at(std::string_view text, size_t position) {
  const auto lead = static_cast<unsigned char>(text[position]);
  if (lead < 0x80) return {lead, 1};
  const Utf8Character character = first_utf8_character(text.substr(position));
  if (character.kind != Utf8Kind::kValid) return {0xFFFD, 1};
  return {character.code_point, character.length};
}

size_t previous_character(std::string_view text, size_t position) {
  size_t begin = position - 1;
  while (begin > 0 && position - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

size_t leading_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (!is_space(character.code)) break;
    end += character.length;
  }
  return end;
}

size_t trailing_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t previous = previous_character(text, begin);
    if (!is_space(character_at(text, previous).code)) break;
    begin = previous;
  }
  return text.size() - begin;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

size_t offset_of_character(std::string_view text, size_t index) {
  size_t position = 0;
  while (position < text.size()) {
    if ((static_cast<unsigned char>(text[position]) & 0xC0) != 0x80 && index-- == 0) return position;
    ++position;
  }
  return text.size();
}

namespace {

bool continues_word(char32_t c) {
  if (c < 0x80) return c == '_' || is_alphanumeric(c);
  const utf8proc_category_t found = category(c);
  return is_alphanumeric(c) || found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_MC ||
         found == UTF8PROC_CATEGORY_PC;
}

}  // namespace

size_t word_length(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (!continues_word(character.code)) break;
    end += character.length;
  }
  return end;
}

bool is_identifier(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Character character = character_at(text, i);
    const char32_t c = character.code;
    const bool starts = c == '_' || is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL);
    if (!starts && (i == 0 || !continues_word(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NO))) return false;
    i += character.length;
  }
  return !text.empty();
}

}  // namespace mote::jinja
