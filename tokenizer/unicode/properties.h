// Properties of characters as the parts of Hugging Face's tokenizers see them. Each was built on another release of
// Unicode, and ids depend on it: a mark that is too new for a table is not stripped.
#pragma once

#include <cstdint>
#include <utility>

namespace mote::tokenizer {

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

// Source: tokenizers normalizers/bert.rs (is_control); Unicode 8
bool is_bert_control(char32_t c);
bool is_nonspacing_mark(char32_t c);  // Unicode 8
// Source: tokenizers normalizers/strip.rs; Unicode 9
bool is_combining_mark(char32_t c);
// Source: tokenizers pre_tokenizers/{bert,punctuation}.rs; Unicode 8 and the punctuation and symbols of ASCII
bool is_punctuation(char32_t c);
// Source: Rust's char::is_numeric; Unicode 17
bool is_numeric(char32_t c);

// Lower case of one character, regardless of those around it: one character or two (second 0: one). Unicode 17
std::pair<char32_t, char32_t> lowercase(char32_t c);

// Canonical combining class in Unicode 9.
int combining_class(char32_t c);
// Whether the character had a decomposition in Unicode 12.0.
bool decomposition_is_known(char32_t c, bool compatibility);

// The script as SentencePiece counts them: Hiragana and Katakana are Han. 0: any. Unicode 10
uint8_t script(char32_t c);

}  // namespace mote::tokenizer
