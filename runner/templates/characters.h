// Code points as Python classifies and maps them. Texts are valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mote::jinja {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_space(char32_t c);       // str.isspace
bool is_line_break(char32_t c);  // where str.splitlines cuts
bool is_printable(char32_t c);   // what repr shows as it is
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit_character(char32_t c);
bool is_numeric(char32_t c);
bool is_alphanumeric(char32_t c);
bool is_upper(char32_t c);  // upper or title case
bool is_title(char32_t c);
bool is_lower(char32_t c);

// Append what Python maps one character to; several for some.
void append_upper(std::string& text, char32_t c);
void append_title(std::string& text, char32_t c);
void append_lower(std::string& text, char32_t c);  // the caller handles a capital sigma at the end of a word
void append_folded(std::string& text, char32_t c);
bool is_cased(char32_t c);
bool is_case_ignorable(char32_t c);

// The character at `position` and its length in bytes; what is no UTF-8 counts as U+FFFD of one byte.
struct Character {
  char32_t code = 0;
  size_t length = 1;
};
Character character_at(std::string_view text, size_t position);
// The start of the character that ends before `position` (> 0).
size_t previous_character(std::string_view text, size_t position);

// Bytes of white space at either end.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

size_t count_characters(std::string_view text);
// Byte offset of character `index`, or text.size() if there are fewer.
size_t offset_of_character(std::string_view text, size_t index);

// Bytes of the run of \w characters that `text` starts with.
size_t word_length(std::string_view text);
bool is_identifier(std::string_view text);

}  // namespace mote::jinja
