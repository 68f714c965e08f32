#include "tokenizer/pretokenize/word_scanner.h"

namespace mote::tokenizer {
namespace {

constexpr uint8_t kWordOrSpace = kClassLetter | kClassNumber | kClassSpace;

size_t end_of_digits(const ClassReader& text, size_t position, int at_most) {
  for (int i = 0; i < at_most && !text.at_end(position) && (text.classes(position) & kClassNumber) != 0; ++i) {
    position = text.next(position);
  }
  return position;
}

// ` ?[^\s...]+[\r\n]*`
size_t end_of_signs(const ClassReader& text, size_t position, uint8_t unwanted, bool slash) {
  const size_t start = text.byte(position) == ' ' ? position + 1 : position;
  size_t end = text.run_unlike(start, unwanted);
  if (end == start) return position;
  while (!text.at_end(end) && (is_line_break(text.byte(end)) || (slash && text.byte(end) == '/'))) ++end;
  return end;
}

// What follows words in every pattern: numbers, signs, white space.
size_t end_of_other(const ClassReader& text, size_t begin, const WordOptions& options) {
  const auto in_words = static_cast<uint8_t>(kWordOrSpace | (options.marks_in_words ? kClassMark : 0));
  size_t end = end_of_digits(text, begin, options.max_digits);
  if (end == begin) end = end_of_signs(text, begin, in_words, options.slash_behind_signs);
  if (end > begin) return end;
  if (options.last_space_whole && text.at_end(text.run(begin, kClassSpace))) return text.size();
  return end_of_space(text, begin, true);
}

// [^\r\n\p{L}\p{N}]
bool may_precede_word(const ClassReader& text, size_t position) {
  return (text.classes(position) & (kClassLetter | kClassNumber)) == 0 && !is_line_break(text.byte(position));
}

// `U*W+` of the cased words, at `begin`; `begin` itself: no match.
size_t end_of_lower(const ClassReader& text, size_t begin) {
  constexpr uint8_t kFirst = kClassUpper | kClassUncased | kClassMark;
  constexpr uint8_t kThen = kClassLower | kClassUncased | kClassMark;
  size_t end = begin;
  size_t behind_both = begin;  // behind the last character of the first run that could also stand in the second
  while (!text.at_end(end) && (text.classes(end) & kFirst) != 0) {
    const bool both = (text.classes(end) & kThen) != 0;
    end = text.next(end);
    if (both) behind_both = end;
  }
  const size_t lower = text.run(end, kThen);
  return lower > end ? lower : behind_both;
}

// `U+W*`
size_t end_of_upper(const ClassReader& text, size_t begin) {
  const size_t end = text.run(begin, kClassUpper | kClassUncased | kClassMark);
  return end == begin ? begin : text.run(end, kClassLower | kClassUncased | kClassMark);
}

size_t end_of_cased_word(const ClassReader& text, size_t begin) {
  const size_t behind_prefix = may_precede_word(text, begin) ? text.next(begin) : begin;
  for (const auto end_of : {end_of_lower, end_of_upper}) {
    if (const size_t end = end_of(text, behind_prefix); end > behind_prefix) return end;
    if (const size_t end = end_of(text, begin); end > begin) return end;
  }
  return begin;
}

}  // namespace

size_t Gpt2Scanner::end_of_piece(std::string_view bytes, size_t begin) const {
  const ClassReader text(bytes);
  if (const size_t end = end_of_contraction(text, begin, false); end > begin) return end;
  size_t start = begin;
  if (text.byte(begin) == ' ' && !text.at_end(begin + 1)) ++start;
  const uint8_t classes = text.classes(start);
  if ((classes & kClassLetter) != 0) return text.run(start, kClassLetter);
  if ((classes & kClassNumber) != 0) return text.run(start, kClassNumber);
  if ((classes & kClassSpace) == 0) return text.run_unlike(start, kWordOrSpace);
  return end_of_space(text, begin, false);
}

size_t WordScanner::end_of_piece(std::string_view bytes, size_t begin) const {
  const ClassReader text(bytes);
  const auto letters = static_cast<uint8_t>(kClassLetter | (options_.marks_in_words ? kClassMark : 0));
  if (options_.contractions == WordOptions::Contractions::kFirst) {
    if (const size_t end = end_of_contraction(text, begin, true); end > begin) return end;
  }
  if ((text.classes(begin) & letters) != 0) return text.run(begin, letters);
  if (may_precede_word(text, begin)) {
    const size_t start = text.next(begin);
    if (const size_t end = text.run(start, letters); end > start) return end;
  }
  return end_of_other(text, begin, options_);
}

size_t CasedWordScanner::end_of_piece(std::string_view bytes, size_t begin) const {
  const ClassReader text(bytes);
  const size_t end = end_of_cased_word(text, begin);
  if (end == begin) return end_of_other(text, begin, options_);
  return options_.contractions == WordOptions::Contractions::kSuffix ? end_of_contraction(text, end, true) : end;
}

}  // namespace mote::tokenizer
