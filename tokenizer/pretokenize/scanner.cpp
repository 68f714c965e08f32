#include "tokenizer/pretokenize/scanner.h"

namespace mote::tokenizer {
namespace {

constexpr std::array<uint8_t, 32> classes_of_categories() {
  std::array<uint8_t, 32> classes{};
  const auto set = [&](uint32_t categories, int bits) {
    for (size_t category = 0; category < 32; ++category) {
      if (((categories >> category) & 1) != 0) classes[category] = static_cast<uint8_t>(classes[category] | bits);
    }
  };
  set(kLetters, kClassLetter);
  set(kNumbers, kClassNumber);
  set(kMarks, kClassMark);
  set(category_mask(kLu, kLt), kClassUpper);
  set(category_mask(kLl), kClassLower);
  set(category_mask(kLm, kLo), kClassUncased);
  set(kPunctuation | kSymbols, kClassSign);
  return classes;
}

constexpr std::array<uint8_t, 32> kClasses = classes_of_categories();

constexpr std::array<uint8_t, 128> ascii_classes() {
  std::array<uint8_t, 128> classes{};
  for (size_t c = 0; c < 128; ++c) {
    if (c >= 'a' && c <= 'z')
      classes[c] = kClassLetter | kClassLower;
    else if (c >= 'A' && c <= 'Z')
      classes[c] = kClassLetter | kClassUpper;
    else if (c >= '0' && c <= '9')
      classes[c] = kClassNumber;
    else if (c == ' ' || (c >= 9 && c <= 13))
      classes[c] = kClassSpace;
    else if (c > ' ' && c < 127)
      classes[c] = kClassSign;
  }
  return classes;
}

}  // namespace

constexpr std::array<uint8_t, 128> ClassReader::kAscii = ascii_classes();

uint8_t ClassReader::classes_of_multibyte(size_t position) const {
  static const CharacterTable& table = CharacterTable::get();
  const char32_t c = first_character(text_.substr(position)).code_point;
  return table.is_space(c) ? uint8_t{kClassSpace} : kClasses[table.category(c)];
}

size_t end_of_contraction(const ClassReader& text, size_t position, bool ignore_case) {
  const std::string_view rest = text.rest(position);
  if (rest.size() < 2 || rest[0] != '\'') return position;
  const auto lower = [&](char c) { return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const char first = lower(rest[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return position + 2;
  if (ignore_case && rest.substr(1, 2) == "\xC5\xBF") return position + 3;  // the long s
  if (rest.size() < 3) return position;
  const char second = lower(rest[2]);
  const bool found =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return found ? position + 3 : position;
}

size_t end_of_space(const ClassReader& text, size_t position, bool break_lines) {
  size_t end = position;
  size_t last = position;         // start of the run's last character
  size_t behind_line = position;  // behind the run's last line break
  while (!text.at_end(end) && (text.classes(end) & kClassSpace) != 0) {
    last = end;
    end = text.next(end);
    if (is_line_break(text.byte(last))) behind_line = end;
  }
  if (break_lines && behind_line > position) return behind_line;
  return text.at_end(end) || last == position ? end : last;
}

}  // namespace mote::tokenizer
