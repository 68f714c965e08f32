#include "tokenizer/characters.h"

#include <utf8proc.h>

#include "base/utf8.h"

namespace mote::tokenizer {
namespace {

size_t last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT: case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: case UTF8PROC_CATEGORY_MN: case UTF8PROC_CATEGORY_MC: case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND: case UTF8PROC_CATEGORY_NL: case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // Join_Control and Other_Alphabetic outside these categories
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
             (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  }
}

size_t leading_space(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Utf8Character character = first_utf8_character(text.substr(length));
    if (!is_space(character.code_point)) break;
    length += character.length;
  }
  return length;
}

size_t trailing_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t previous = last_character(text.substr(0, begin));
    if (!is_space(first_utf8_character(text.substr(previous)).code_point)) break;
    begin = previous;
  }
  return text.size() - begin;
}

bool starts_with_word(std::string_view text) { return !text.empty() && is_word(first_utf8_character(text).code_point); }

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word(first_utf8_character(text.substr(last_character(text))).code_point);
}

}  // namespace mote::tokenizer
