// Reading the source of a grammar: a place in a text, and errors that name it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace mote::constraints {

class Cursor {
 public:
  // `text` is valid UTF-8 and outlives the cursor. `what` names it in errors: "GBNF".
  Cursor(std::string_view text, const char* what) : text_(text), what_(what) {}

  bool at_end() const { return position_ >= text_.size(); }
  size_t position() const { return position_; }
  void seek(size_t position) { position_ = position; }
  // The byte `offset` bytes further on; 0 behind the end.
  char peek(size_t offset = 0) const { return position_ + offset < text_.size() ? text_[position_ + offset] : '\0'; }
  void skip(size_t count = 1) { position_ += count; }
  // Whether `text` comes next; if so the cursor passes it.
  bool take(std::string_view text);
  bool comes(std::string_view text) const { return text_.substr(position_).starts_with(text); }
  // Passes the next character and returns it. Not to be called at the end.
  char32_t take_character();
  // Reads 2, 4 or 8 hexadecimal digits. Errors: kInvalidArgument unless they are there and name a character.
  Result<char32_t> take_hexadecimal(int num_digits);
  // Reads a decimal number. Errors: kInvalidArgument if there is none or it has more than 6 digits.
  Result<uint32_t> take_number();
  std::string_view since(size_t position) const { return text_.substr(position, position_ - position); }

  // An error at the cursor, such as "GBNF: line 3, column 7: ...".
  Status error(const std::string& message) const;
  // The next character in the form that errors show.
  std::string shown() const;

 private:
  std::string_view text_;
  const char* what_;
  size_t position_ = 0;
};

}  // namespace mote::constraints
