#include "tokenizer/unicode/characters.h"

#include <utf8proc.h>

#include <map>

#include "base/parts.h"

namespace mote::tokenizer {

const std::array<CategoryRange, 127> kNewerCategories{
    {{0x897, 0x897, kMn},     {0xCF3, 0xCF3, kMc},     {0xECE, 0xECE, kMn},     {0x1B4E, 0x1B4F, kPo},
     {0x1B7F, 0x1B7F, kPo},   {0x1C89, 0x1C89, kLu},   {0x1C8A, 0x1C8A, kLl},   {0x2427, 0x2429, kSo},
     {0x2FFC, 0x2FFF, kSo},   {0x31E4, 0x31E5, kSo},   {0x31EF, 0x31EF, kSo},   {0xA7CB, 0xA7CC, kLu},
     {0xA7CD, 0xA7CD, kLl},   {0xA7DA, 0xA7DA, kLu},   {0xA7DB, 0xA7DB, kLl},   {0xA7DC, 0xA7DC, kLu},
     {0x105C0, 0x105F3, kLo}, {0x10D40, 0x10D49, kNd}, {0x10D4A, 0x10D4D, kLo}, {0x10D4E, 0x10D4E, kLm},
     {0x10D4F, 0x10D4F, kLo}, {0x10D50, 0x10D65, kLu}, {0x10D69, 0x10D6D, kMn}, {0x10D6E, 0x10D6E, kPd},
     {0x10D6F, 0x10D6F, kLm}, {0x10D70, 0x10D85, kLl}, {0x10D8E, 0x10D8F, kSm}, {0x10EC2, 0x10EC4, kLo},
     {0x10EFC, 0x10EFF, kMn}, {0x1123F, 0x11240, kLo}, {0x11241, 0x11241, kMn}, {0x11380, 0x11389, kLo},
     {0x1138B, 0x1138B, kLo}, {0x1138E, 0x1138E, kLo}, {0x11390, 0x113B5, kLo}, {0x113B7, 0x113B7, kLo},
     {0x113B8, 0x113BA, kMc}, {0x113BB, 0x113C0, kMn}, {0x113C2, 0x113C2, kMc}, {0x113C5, 0x113C5, kMc},
     {0x113C7, 0x113CA, kMc}, {0x113CC, 0x113CD, kMc}, {0x113CE, 0x113CE, kMn}, {0x113CF, 0x113CF, kMc},
     {0x113D0, 0x113D0, kMn}, {0x113D1, 0x113D1, kLo}, {0x113D2, 0x113D2, kMn}, {0x113D3, 0x113D3, kLo},
     {0x113D4, 0x113D5, kPo}, {0x113D7, 0x113D8, kPo}, {0x113E1, 0x113E2, kMn}, {0x116D0, 0x116E3, kNd},
     {0x1171E, 0x1171E, kMc}, {0x11B00, 0x11B09, kPo}, {0x11BC0, 0x11BE0, kLo}, {0x11BE1, 0x11BE1, kPo},
     {0x11BF0, 0x11BF9, kNd}, {0x11F00, 0x11F01, kMn}, {0x11F02, 0x11F02, kLo}, {0x11F03, 0x11F03, kMc},
     {0x11F04, 0x11F10, kLo}, {0x11F12, 0x11F33, kLo}, {0x11F34, 0x11F35, kMc}, {0x11F36, 0x11F3A, kMn},
     {0x11F3E, 0x11F3F, kMc}, {0x11F40, 0x11F40, kMn}, {0x11F41, 0x11F41, kMc}, {0x11F42, 0x11F42, kMn},
     {0x11F43, 0x11F4F, kPo}, {0x11F50, 0x11F59, kNd}, {0x11F5A, 0x11F5A, kMn}, {0x1342F, 0x1342F, kLo},
     {0x13439, 0x1343F, kCf}, {0x13440, 0x13440, kMn}, {0x13441, 0x13446, kLo}, {0x13447, 0x13455, kMn},
     {0x13460, 0x143FA, kLo}, {0x16100, 0x1611D, kLo}, {0x1611E, 0x16129, kMn}, {0x1612A, 0x1612C, kMc},
     {0x1612D, 0x1612F, kMn}, {0x16130, 0x16139, kNd}, {0x16D40, 0x16D42, kLm}, {0x16D43, 0x16D6A, kLo},
     {0x16D6B, 0x16D6C, kLm}, {0x16D6D, 0x16D6F, kPo}, {0x16D70, 0x16D79, kNd}, {0x18CFF, 0x18CFF, kLo},
     {0x1B132, 0x1B132, kLo}, {0x1B155, 0x1B155, kLo}, {0x1CC00, 0x1CCEF, kSo}, {0x1CCF0, 0x1CCF9, kNd},
     {0x1CD00, 0x1CEB3, kSo}, {0x1D2C0, 0x1D2D3, kNo}, {0x1DF25, 0x1DF2A, kLl}, {0x1E030, 0x1E06D, kLm},
     {0x1E08F, 0x1E08F, kMn}, {0x1E4D0, 0x1E4EA, kLo}, {0x1E4EB, 0x1E4EB, kLm}, {0x1E4EC, 0x1E4EF, kMn},
     {0x1E4F0, 0x1E4F9, kNd}, {0x1E5D0, 0x1E5ED, kLo}, {0x1E5EE, 0x1E5EF, kMn}, {0x1E5F0, 0x1E5F0, kLo},
     {0x1E5F1, 0x1E5FA, kNd}, {0x1E5FF, 0x1E5FF, kPo}, {0x1F6DC, 0x1F6DC, kSo}, {0x1F774, 0x1F776, kSo},
     {0x1F77B, 0x1F77F, kSo}, {0x1F7D9, 0x1F7D9, kSo}, {0x1F8B2, 0x1F8BB, kSo}, {0x1F8C0, 0x1F8C1, kSo},
     {0x1FA75, 0x1FA77, kSo}, {0x1FA87, 0x1FA89, kSo}, {0x1FA8F, 0x1FA8F, kSo}, {0x1FAAD, 0x1FAAF, kSo},
     {0x1FABB, 0x1FABF, kSo}, {0x1FAC6, 0x1FAC6, kSo}, {0x1FACE, 0x1FACF, kSo}, {0x1FADA, 0x1FADC, kSo},
     {0x1FADF, 0x1FADF, kSo}, {0x1FAE8, 0x1FAE9, kSo}, {0x1FAF7, 0x1FAF8, kSo}, {0x1FBCB, 0x1FBEF, kSo},
     {0x2B739, 0x2B739, kLo}, {0x2EBF0, 0x2EE5D, kLo}, {0x31350, 0x323AF, kLo}}};

namespace {

// Alphabetic, but in no category of letters.
bool is_other_alphabetic(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

bool is_conjoining_vowel_or_final(char32_t c) { return (c >= 0x1160 && c <= 0x11FF) || (c >= 0xD7B0 && c <= 0xD7FB); }

// Whether NFC changes `c` alone.
bool changes_in_nfc(char32_t c) {
  utf8proc_int32_t buffer[16];
  int last_class = 0;
  const utf8proc_ssize_t length =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), buffer, 16, UTF8PROC_DECOMPOSE, &last_class);
  if (length <= 0 || length > 16) return true;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  return utf8proc_normalize_utf32(buffer, length, options) != 1 || buffer[0] != static_cast<utf8proc_int32_t>(c);
}

// Which only the normalisers to such forms ask.
bool may_compose(char32_t c, Category category) {
  if constexpr (!is_built("tokenizer.unicode_forms")) return true;
  if (((kMarks >> category) & 1) != 0 || is_conjoining_vowel_or_final(c)) return true;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class != 0 || changes_in_nfc(c);
}

constexpr char32_t kFirstEmpty = 0x32400;  // from here to the tags no character is assigned

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

CharacterTable::CharacterTable() {
  std::map<std::array<uint8_t, 256>, uint16_t> known;
  std::array<uint8_t, 256> page{};
  auto newer = kNewerCategories.begin();
  for (char32_t start = 0; start <= 0x10FF00; start += 256) {
    for (char32_t c = start; c < start + 256; ++c) {
      uint8_t value = 0;
      if (c < kFirstEmpty || (c >= 0xE0000 && c < 0xE0200)) {
        auto category = static_cast<Category>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
        while (newer != kNewerCategories.end() && newer->last < c) ++newer;
        if (newer != kNewerCategories.end() && c >= newer->first) category = newer->category;
        value = static_cast<uint8_t>(category | (tokenizer::is_space(c) ? kSpaceBit : 0) |
                                     (c >= 0x300 && may_compose(c, category) ? kComposeBit : 0));
      } else if (c >= 0xF0000) {
        value = (c & 0xFFFF) <= 0xFFFD ? kCo : kCn;
      }
      page[c - start] = value;
    }
    const auto [found, is_new] = known.try_emplace(page, static_cast<uint16_t>(known.size()));
    if (is_new) pages_.insert(pages_.end(), page.begin(), page.end());
    page_of_[start >> 8] = found->second;
  }
}

const CharacterTable& CharacterTable::get() {
  static const CharacterTable& table = *new CharacterTable;  // threads may encode while the process exits
  return table;
}

bool CharacterTable::is_word(char32_t c) const {
  return in(c, kLetters | kMarks | category_mask(kNd, kNl, kPc)) || c == 0x200C || c == 0x200D ||
         is_other_alphabetic(c);
}

Character last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return first_character(text.substr(begin));
}

size_t leading_space(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Character character = first_character(text.substr(length));
    if (!is_space(character.code_point)) break;
    length += character.length;
  }
  return length;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const Character character = last_character(text.substr(0, end));
    if (!is_space(character.code_point)) break;
    end -= character.length;
  }
  return text.size() - end;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && CharacterTable::get().is_word(first_character(text).code_point);
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && CharacterTable::get().is_word(last_character(text).code_point);
}

}  // namespace mote::tokenizer
