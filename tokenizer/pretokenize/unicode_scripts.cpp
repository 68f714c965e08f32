#include "tokenizer/pretokenize/unicode_scripts.h"

#include "tokenizer/unicode/properties.h"

namespace mote::tokenizer {

Status UnicodeScripts::cut(std::string_view text, std::vector<Piece>& parts) const {
  const size_t first = parts.size();
  int previous = -1;
  for (size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    const int here = script(character.code_point);
    if (here != 0 && here != previous) {
      if (parts.size() > first) parts.back().end = static_cast<uint32_t>(at);
      parts.push_back({static_cast<uint32_t>(at), 0});
    }
    if (here != 0) previous = here;
    at += character.length;
  }
  if (parts.size() > first) parts.back().end = static_cast<uint32_t>(text.size());
  return {};
}

}  // namespace mote::tokenizer
