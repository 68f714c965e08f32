// White space and word characters, as \s and \w of the regular expressions that tokenizers are written with.
#pragma once

#include <cstddef>
#include <string_view>

namespace mote::tokenizer {

bool is_space(char32_t c);  // Unicode White_Space
bool is_word(char32_t c);   // Alphabetic, Mark, Decimal_Number, Connector_Punctuation, Join_Control

// Bytes of white space at either end of valid UTF-8.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

bool starts_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

}  // namespace mote::tokenizer
