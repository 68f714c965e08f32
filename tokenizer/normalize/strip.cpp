#include "tokenizer/normalize/strip.h"

#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {

Status Strip::apply(AlignedText& text) const {
  const size_t leading = left_ ? leading_space(text.text()) : 0;
  const size_t trailing = right_ ? trailing_space(std::string_view(text.text()).substr(leading)) : 0;
  if (leading + trailing == 0) return {};
  TextEditor editor(text);
  editor.skip(leading);
  editor.copy(text.size() - leading - trailing);
  editor.finish();
  return {};
}

}  // namespace mote::tokenizer
