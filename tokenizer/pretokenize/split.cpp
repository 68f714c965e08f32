#include "tokenizer/pretokenize/split.h"

#include "tokenizer/pretokenize/split_behavior.h"

namespace mote::tokenizer {

Status Split::cut(std::string_view text, std::vector<Piece>& parts) const {
  MOTE_ASSIGN(std::vector<Span> spans, pattern_.spans(text));
  if (invert_) {
    for (Span& span : spans) span.is_match = !span.is_match;
  }
  append_parts(behavior_, spans, parts);
  return {};
}

Status ScannerSplit::cut(std::string_view text, std::vector<Piece>& parts) const {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = scanner_->end_of_piece(text, begin);
    parts.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
  return {};
}

}  // namespace mote::tokenizer
