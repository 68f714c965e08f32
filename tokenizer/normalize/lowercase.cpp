#include "tokenizer/normalize/lowercase.h"

#include "tokenizer/unicode/characters.h"
#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {

void lowercase(AlignedText& text) {
  TextEditor editor(text);
  while (!editor.at_end()) {
    const auto [first, second] = lowercase(first_character(editor.rest()).code_point);
    editor.replace(first);
    if (second != 0) editor.insert(second);
  }
  editor.finish();
}

Status Lowercase::apply(AlignedText& text) const {
  lowercase(text);
  return {};
}

}  // namespace mote::tokenizer
