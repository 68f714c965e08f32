#include "runner/grammars/cursor.h"

#include <algorithm>

#include "base/utf8.h"

namespace mote::constraints {
namespace {

constexpr int kMaxDigits = 6;

int hexadecimal_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool Cursor::take(std::string_view text) {
  if (!comes(text)) return false;
  position_ += text.size();
  return true;
}

char32_t Cursor::take_character() {
  const Utf8Character character = first_utf8_character(text_.substr(position_));
  position_ += character.length;
  return character.code_point;
}

Result<char32_t> Cursor::take_hexadecimal(int num_digits) {
  char32_t value = 0;
  for (int i = 0; i < num_digits; ++i) {
    const int digit = hexadecimal_value(peek());
    if (digit < 0) return error(format("%d hexadecimal digits must follow, not %s", num_digits, shown().c_str()));
    value = value * 16 + static_cast<char32_t>(digit);
    skip();
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    return error(format("U+%04X is no character", static_cast<unsigned>(value)));
  }
  return value;
}

Result<uint32_t> Cursor::take_number() {
  uint32_t value = 0;
  int num_digits = 0;
  for (; peek() >= '0' && peek() <= '9'; skip()) {
    if (++num_digits > kMaxDigits) return error("a number of more than 6 digits");
    value = value * 10 + static_cast<uint32_t>(peek() - '0');
  }
  if (num_digits == 0) return error("a number must follow, not " + shown());
  return value;
}

Status Cursor::error(const std::string& message) const {
  const std::string_view before = text_.substr(0, std::min(position_, text_.size()));
  const auto line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const auto is_character_start = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto column = static_cast<size_t>(std::count_if(before.begin() + static_cast<ptrdiff_t>(line_start),
                                                        before.end(), is_character_start)) +
                      1;
  return {Code::kInvalidArgument, format("%s: line %zu, column %zu: %s", what_, line, column, message.c_str())};
}

std::string Cursor::shown() const {
  if (at_end()) return "the end";
  const size_t length = first_utf8_character(text_.substr(position_)).length;
  if (peek() == '\n') return "the end of the line";
  return "'" + std::string(text_.substr(position_, length)) + "'";
}

}  // namespace mote::constraints
