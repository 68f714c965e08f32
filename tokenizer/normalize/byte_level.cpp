#include "tokenizer/normalize/byte_level.h"

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {

void spell_bytes(AlignedText& text) {
  TextEditor editor(text);
  while (!editor.at_end()) {
    const std::string_view rest = editor.rest();
    const size_t length = first_character(rest).length;
    editor.replace(byte_character(static_cast<unsigned char>(rest[0])));
    for (size_t i = 1; i < length; ++i) editor.insert(byte_character(static_cast<unsigned char>(rest[i])));
  }
  editor.finish();
}

Status ByteLevelNormalizer::apply(AlignedText& text) const {
  spell_bytes(text);
  return {};
}

}  // namespace mote::tokenizer
