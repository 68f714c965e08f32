// The byte-level alphabet of GPT-2: every byte is spelled as one printable character.
// Source: gpt-2 encoder.py bytes_to_unicode | tokenizers pre_tokenizers/byte_level.rs bytes_char
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mote::tokenizer {

// The character that spells `byte`, as UTF-8.
std::string byte_spelling(unsigned char byte);
char32_t byte_character(unsigned char byte);

// The bytes that `spelled` stands for; none if a character is not in the alphabet.
std::optional<std::string> spelled_bytes(std::string_view spelled);

}  // namespace mote::tokenizer
