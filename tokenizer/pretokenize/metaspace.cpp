#include "tokenizer/pretokenize/metaspace.h"

#include "base/utf8.h"

namespace mote::tokenizer {
namespace {

void replace_spaces(AlignedText& text, std::string_view replacement) {
  if (text.text().find(' ') == std::string::npos) return;
  TextEditor editor(text);
  while (!editor.at_end()) {
    const size_t space = std::min(editor.rest().find(' '), editor.rest().size());
    editor.copy(space);
    if (editor.at_end()) break;
    editor.skip(1);
    editor.insert(replacement);
  }
  editor.finish();
}

}  // namespace

Metaspace::Metaspace(char32_t replacement, fb::PrependScheme scheme, bool split) : scheme_(scheme), split_(split) {
  append_utf8(replacement_, replacement);
}

Status Metaspace::change(AlignedText& text, std::vector<Piece>& parts) const {
  replace_spaces(text, replacement_);
  const bool prepend =
      scheme_ == fb::PrependScheme::always || (scheme_ == fb::PrependScheme::first && text.origin_begin() == 0);
  if (prepend && text.text().substr(0, replacement_.size()) != replacement_) text.prepend(replacement_);
  size_t begin = 0;
  while (split_) {
    const size_t next = text.text().find(replacement_, begin + 1);
    if (next == std::string::npos) break;
    parts.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(next)});
    begin = next;
  }
  parts.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(text.size())});
  return {};
}

}  // namespace mote::tokenizer
