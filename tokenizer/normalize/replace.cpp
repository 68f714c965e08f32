#include "tokenizer/normalize/replace.h"

#include "tokenizer/text/growth.h"

namespace mote::tokenizer {

Status Replace::apply(AlignedText& text) const {
  MOTE_ASSIGN(const std::vector<Span> spans, pattern_.spans(text.text()));
  size_t bytes = 0;
  for (const Span& span : spans) bytes += span.is_match ? content_.size() : span.end - span.begin;
  MOTE_RETURN_IF_ERROR(check_growth(bytes, text.limit()));
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
