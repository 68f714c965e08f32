#include "tokenizer/normalize/strip_accents.h"

#include "tokenizer/unicode/characters.h"
#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {

Status StripAccents::apply(AlignedText& text) const {
  TextEditor editor(text);
  while (!editor.at_end()) {
    const Character character = first_character(editor.rest());
    if (is_combining_mark(character.code_point))
      editor.skip(character.length);
    else
      editor.copy(character.length);
  }
  editor.finish();
  return {};
}

}  // namespace mote::tokenizer
