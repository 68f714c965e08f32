#include "tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace mote::tokenizer {
namespace {

// Bytes that are printable in Latin-1 spell themselves, the others follow from U+0100 in order.
struct Alphabet {
  std::array<char16_t, 256> character{};
  std::array<int16_t, 512> byte{};

  Alphabet() {
    byte.fill(-1);
    char16_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char16_t c = printable ? static_cast<char16_t>(b) : next++;
      character[static_cast<size_t>(b)] = c;
      byte[c] = static_cast<int16_t>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string byte_spelling(unsigned char byte) {
  std::string text;
  append_utf8(text, alphabet().character[byte]);
  return text;
}

char32_t byte_character(unsigned char byte) { return alphabet().character[byte]; }

std::optional<std::string> spelled_bytes(std::string_view spelled) {
  std::string bytes;
  while (!spelled.empty()) {
    const Utf8Character character = first_utf8_character(spelled);
    if (character.kind != Utf8Kind::kValid || character.code_point >= alphabet().byte.size()) return std::nullopt;
    const int byte = alphabet().byte[character.code_point];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(static_cast<unsigned char>(byte));
    spelled.remove_prefix(character.length);
  }
  return bytes;
}

}  // namespace mote::tokenizer
