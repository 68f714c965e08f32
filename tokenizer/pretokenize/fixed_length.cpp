#include "tokenizer/pretokenize/fixed_length.h"

namespace mote::tokenizer {

Status FixedLength::cut(std::string_view text, std::vector<Piece>& parts) const {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = begin;
    for (uint32_t i = 0; i < length_ && end < text.size(); ++i) end += first_character(text.substr(end)).length;
    parts.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
  return {};
}

}  // namespace mote::tokenizer
