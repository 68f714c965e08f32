// Hand-written matchers for the regular expressions that models in use are cut with. A piece is what the regular
// expression matches or what lies between two matches.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {

// Immutable.
class Scanner {
 public:
  virtual ~Scanner() = default;
  // Where the piece that starts at `begin` ends; begin < text.size(). `text` is valid UTF-8.
  virtual size_t end_of_piece(std::string_view text, size_t begin) const = 0;
};

// The scanner for a regular expression; nullptr: none was written for it.
std::unique_ptr<Scanner> scanner_for(std::string_view pattern);

// What the scanners ask of a character, in one byte.
enum CharacterClass : uint8_t {
  kClassLetter = 1,
  kClassNumber = 2,
  kClassSpace = 4,
  kClassMark = 8,
  kClassUpper = 16,    // Lu, Lt
  kClassLower = 32,    // Ll
  kClassUncased = 64,  // Lm, Lo
  kClassSign = 128,    // P, S
};

// Reads a text by classes.
class ClassReader {
 public:
  explicit ClassReader(std::string_view text) : text_(text) {}

  size_t size() const { return text_.size(); }
  bool at_end(size_t position) const { return position >= text_.size(); }
  // position < size() for these.
  char byte(size_t position) const { return text_[position]; }
  uint8_t classes(size_t position) const {
    const auto lead = static_cast<unsigned char>(text_[position]);
    return lead < 0x80 ? kAscii[lead] : classes_of_multibyte(position);
  }
  size_t next(size_t position) const {
    const auto lead = static_cast<unsigned char>(text_[position]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    return position + length < text_.size() ? position + length : text_.size();
  }
  // Where the run of characters with one of `wanted` ends, or (unlike) with none of them.
  size_t run(size_t position, uint8_t wanted) const {
    while (!at_end(position) && (classes(position) & wanted) != 0) position = next(position);
    return position;
  }
  size_t run_unlike(size_t position, uint8_t unwanted) const {
    while (!at_end(position) && (classes(position) & unwanted) == 0) position = next(position);
    return position;
  }
  std::string_view rest(size_t position) const { return text_.substr(position); }

 private:
  static const std::array<uint8_t, 128> kAscii;
  uint8_t classes_of_multibyte(size_t position) const;

  std::string_view text_;
};

// Ends of what the alternatives that the patterns share match at `position`; `position` itself: nothing.
// 's 't 're 've 'm 'll 'd
size_t end_of_contraction(const ClassReader& text, size_t position, bool ignore_case);
// \s+(?!\S)|\s+, and with `break_lines` \s*[\r\n]+ before these.
size_t end_of_space(const ClassReader& text, size_t position, bool break_lines);

inline bool is_line_break(char c) { return c == '\n' || c == '\r'; }

}  // namespace mote::tokenizer
