#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace mote {
namespace {

struct Sequence {
  size_t length = 0;          // bytes of a character that begins so; 0: this is no lead byte
  uint8_t second_low = 0x80;  // range of the second byte (Unicode standard, table 3-7)
  uint8_t second_high = 0xBF;
};

Sequence sequence_of(uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead >= 0xC2 && lead <= 0xDF) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Character first_utf8_character(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const Sequence sequence = sequence_of(lead);
  if (sequence.length == 0) return {Utf8Kind::kInvalid, 1, 0};
  if (sequence.length == 1) return {Utf8Kind::kValid, 1, lead};
  char32_t code_point = lead & (0x7Fu >> sequence.length);
  for (size_t i = 1; i < sequence.length; ++i) {
    if (i == text.size()) return {Utf8Kind::kIncomplete, i, 0};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? sequence.second_low : uint8_t{0x80};
    const uint8_t high = i == 1 ? sequence.second_high : uint8_t{0xBF};
    if (byte < low || byte > high) return {Utf8Kind::kInvalid, i, 0};
    code_point = (code_point << 6) | (byte & 0x3Fu);
  }
  return {Utf8Kind::kValid, sequence.length, code_point};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const Utf8Character character = first_utf8_character(text.substr(position));
    if (character.kind != Utf8Kind::kValid) return position;
    position += character.length;
  }
  return position;
}

size_t incomplete_utf8_suffix(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(3, text.size()); ++length) {
    if (first_utf8_character(text.substr(text.size() - length)).kind == Utf8Kind::kIncomplete) return length;
  }
  return 0;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string replaced;
  replaced.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    replaced += character.kind == Utf8Kind::kValid ? text.substr(0, character.length) : kReplacementCharacter;
    text.remove_prefix(character.length);
  }
  return replaced;
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(static_cast<uint8_t>(byte)); };
  const auto put_continuations = [&](int count) {
    for (int shift = 6 * (count - 1); shift >= 0; shift -= 6) put(0x80 | ((code_point >> shift) & 0x3F));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put_continuations(1);
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put_continuations(2);
  } else {
    put(0xF0 | (code_point >> 18));
    put_continuations(3);
  }
}

}  // namespace mote
