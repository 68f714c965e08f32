// What tokenizers ask of a character: its general category in Unicode 16, white space, word characters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mote::tokenizer {

inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581, which SentencePiece writes for a space

// General categories, numbered as utf8proc does.
enum Category : uint8_t {
  kCn,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo
};

constexpr uint32_t category_mask() { return 0; }
template <typename... Rest>
constexpr uint32_t category_mask(Category first, Rest... rest) {
  return (uint32_t{1} << first) | category_mask(rest...);
}

inline constexpr uint32_t kLetters = category_mask(kLu, kLl, kLt, kLm, kLo);
inline constexpr uint32_t kMarks = category_mask(kMn, kMc, kMe);
inline constexpr uint32_t kNumbers = category_mask(kNd, kNl, kNo);
inline constexpr uint32_t kPunctuation = category_mask(kPc, kPd, kPs, kPe, kPi, kPf, kPo);
inline constexpr uint32_t kSymbols = category_mask(kSm, kSc, kSk, kSo);

// What Unicode 15 and 16 assigned: utf8proc may know only Unicode 15 and PCRE2 only 14, Hugging Face's regular
// expressions know 16.
struct CategoryRange {
  char32_t first;
  char32_t last;
  Category category;
};
extern const std::array<CategoryRange, 127> kNewerCategories;

// Every character's properties in two levels. Immutable; the first call builds it in about a millisecond.
class CharacterTable {
 public:
  static const CharacterTable& get();

  Category category(char32_t c) const { return static_cast<Category>(entry(c) & 31); }
  bool in(char32_t c, uint32_t categories) const { return ((categories >> (entry(c) & 31)) & 1) != 0; }
  bool is_space(char32_t c) const { return (entry(c) & kSpaceBit) != 0; }
  // False: a text of only such characters is in NFC as it stands.
  bool may_change_in_nfc(char32_t c) const { return (entry(c) & kComposeBit) != 0; }
  // As \w of the regex crate: Alphabetic, Mark, Decimal_Number, Connector_Punctuation, Join_Control.
  bool is_word(char32_t c) const;

 private:
  static constexpr uint8_t kSpaceBit = 32;
  static constexpr uint8_t kComposeBit = 64;

  CharacterTable();
  uint8_t entry(char32_t c) const {
    return c <= 0x10FFFF ? pages_[(static_cast<size_t>(page_of_[c >> 8]) << 8) | (c & 255)] : 0;
  }

  std::array<uint16_t, 0x1100> page_of_{};
  std::vector<uint8_t> pages_;
};

// The first character of UTF-8 that is not empty. Ill-formed text gives some character, never a read outside of it.
struct Character {
  char32_t code_point = 0;
  size_t length = 1;
};
inline Character first_character(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = at(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length > text.size()) return {0xFFFD, 1};
  if (length == 2) return {(lead & 0x1F) << 6 | (at(1) & 0x3F), 2};
  if (length == 3) return {(lead & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (at(1) & 0x3F) << 12 | (at(2) & 0x3F) << 6 | (at(3) & 0x3F), 4};
}
// The last one.
Character last_character(std::string_view text);

bool is_space(char32_t c);  // Unicode White_Space

// Bytes of white space at either end of valid UTF-8.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

size_t count_characters(std::string_view text);  // of valid UTF-8

bool starts_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

}  // namespace mote::tokenizer
