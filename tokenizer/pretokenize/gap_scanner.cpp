#include "tokenizer/pretokenize/gap_scanner.h"

namespace mote::tokenizer {
namespace {

bool is_ascii_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

bool is_ascii_sign(const ClassReader& text, size_t position) {
  return static_cast<unsigned char>(text.byte(position)) < 0x80 && (text.classes(position) & kClassSign) != 0;
}

}  // namespace

size_t GapScanner::end_of_piece(std::string_view bytes, size_t begin) const {
  const ClassReader text(bytes);
  if (const size_t end = end_of_match(text, begin); end > begin) return end;
  size_t end = text.next(begin);
  while (!text.at_end(end) && end_of_match(text, end) == end) end = text.next(end);
  return end;
}

size_t DigitsScanner::end_of_match(const ClassReader& text, size_t position) const {
  for (int i = 0; i < at_most_ && !text.at_end(position) && (text.classes(position) & kClassNumber) != 0; ++i) {
    position = text.next(position);
  }
  return position;
}

size_t ThreeDigitsScanner::end_of_match(const ClassReader& text, size_t position) const {
  for (size_t i = position; i < position + 3; ++i) {
    if (text.at_end(i) || text.byte(i) < '0' || text.byte(i) > '9') return position;
  }
  return position + 3;
}

size_t CjkScanner::end_of_match(const ClassReader& text, size_t position) const {
  while (!text.at_end(position)) {
    const Character character = first_character(text.rest(position));
    const char32_t c = character.code_point;
    if (!(c >= 0x4E00 && c <= 0x9FA5) && !(c >= 0x3040 && c <= 0x30FF)) break;
    position += character.length;
  }
  return position;
}

size_t DeepSeekScanner::end_of_match(const ClassReader& text, size_t position) const {
  constexpr uint8_t kWord = kClassLetter | kClassMark;
  if (is_ascii_sign(text, position)) {
    size_t end = position + 1;
    while (!text.at_end(end) && is_ascii_letter(text.byte(end))) ++end;
    if (end > position + 1) return end;
  }
  const uint8_t classes = text.classes(position);
  if ((classes & (kClassLetter | kClassSign)) == 0 && !is_line_break(text.byte(position))) {
    const size_t start = text.next(position);
    if (const size_t end = text.run(start, kWord); end > start) return end;
  }
  if (const size_t end = text.run(position, kWord); end > position) return end;
  const size_t start = text.byte(position) == ' ' ? position + 1 : position;
  if (size_t end = text.run(start, kClassSign); end > start) {
    while (!text.at_end(end) && is_line_break(text.byte(end))) ++end;
    return end;
  }
  return (classes & kClassSpace) != 0 ? end_of_space(text, position, true) : position;
}

}  // namespace mote::tokenizer
