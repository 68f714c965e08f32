#include "tokenizer/normalize/nmt.h"

#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {

namespace {

bool is_dropped(char32_t c) {
  return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}

bool becomes_space(char32_t c) {
  return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
         c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

}  // namespace

Status Nmt::apply(AlignedText& text) const {
  TextEditor editor(text);
  while (!editor.at_end()) {
    const Character character = first_character(editor.rest());
    if (is_dropped(character.code_point))
      editor.skip(character.length);
    else if (becomes_space(character.code_point))
      editor.replace(U' ');
    else
      editor.copy(character.length);
  }
  editor.finish();
  return {};
}

}  // namespace mote::tokenizer
