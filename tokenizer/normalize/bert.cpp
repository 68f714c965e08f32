#include "tokenizer/normalize/bert.h"

#include "tokenizer/normalize/lowercase.h"
#include "tokenizer/normalize/unicode_form.h"
#include "tokenizer/unicode/characters.h"
#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {

namespace {

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void clean(AlignedText& text) {
  TextEditor editor(text);
  while (!editor.at_end()) {
    const Character character = first_character(editor.rest());
    const char32_t c = character.code_point;
    if (c == 0 || c == 0xFFFD || is_bert_control(c))
      editor.skip(character.length);
    else if (is_space(c))
      editor.replace(U' ');
    else
      editor.copy(character.length);
  }
  editor.finish();
}

// A space on either side of every Chinese character. The second space takes the character's origin, the first replaces
// it.
void isolate_chinese(AlignedText& text) {
  TextEditor editor(text);
  while (!editor.at_end()) {
    const Character character = first_character(editor.rest());
    if (!is_chinese(character.code_point)) {
      editor.copy(character.length);
      continue;
    }
    editor.replace(U' ');
    editor.insert(character.code_point);
    editor.insert(U' ');
  }
  editor.finish();
}

void strip_marks(AlignedText& text) {
  decompose(text, false);
  TextEditor editor(text);
  while (!editor.at_end()) {
    const Character character = first_character(editor.rest());
    if (is_nonspacing_mark(character.code_point))
      editor.skip(character.length);
    else
      editor.copy(character.length);
  }
  editor.finish();
}

}  // namespace

Status BertNormalizer::apply(AlignedText& text) const {
  if (options_.clean_text) clean(text);
  if (options_.handle_chinese_chars) isolate_chinese(text);
  if (options_.strip_accents) strip_marks(text);
  if (options_.lowercase) lowercase(text);
  return {};
}

}  // namespace mote::tokenizer
