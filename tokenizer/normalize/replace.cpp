#include "tokenizer/normalize/replace.h"

namespace mote::tokenizer {

Status Replace::apply(AlignedText& text) const {
  MOTE_ASSIGN(const std::vector<Span> spans, pattern_.spans(text.text()));
  TextEditor editor(text);
  for (const Span& span : spans) {
    if (span.is_match) {
      editor.skip(span.end - span.begin);
      editor.insert(content_);
    } else {
      editor.copy(span.end - span.begin);
    }
  }
  editor.finish();
  return {};
}

}  // namespace mote::tokenizer
