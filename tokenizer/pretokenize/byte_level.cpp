#include "tokenizer/pretokenize/byte_level.h"

#include "tokenizer/normalize/byte_level.h"

namespace mote::tokenizer {
namespace {

void append_words(const Scanner& scanner, std::string_view text, std::vector<Piece>& parts) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = scanner.end_of_piece(text, begin);
    parts.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
}

// How many bytes longer UTF-8 becomes when its bytes are spelled.
uint32_t spelled_size(std::string_view text) {
  uint32_t size = 0;
  for (const char c : text) size += (c > ' ' && c < 0x7F) ? 1 : 2;
  return size;
}

}  // namespace

Status ByteLevel::change(AlignedText& text, std::vector<Piece>& parts) const {
  const size_t first = parts.size();
  if (add_prefix_space_ && text.text().substr(0, 1) != " ") text.prepend(" ");
  if (use_regex_)
    append_words(scanner_, text.text(), parts);
  else
    parts.push_back({0, static_cast<uint32_t>(text.size())});
  if (!spell_) return {};
  uint32_t end = 0;
  for (size_t i = first; i < parts.size(); ++i) {
    Piece& part = parts[i];
    const uint32_t size = spelled_size(std::string_view(text.text()).substr(part.begin, part.end - part.begin));
    part = {end, end + size};
    end += size;
  }
  spell_bytes(text);
  return {};
}

Status ByteLevelSplit::cut(std::string_view text, std::vector<Piece>& parts) const {
  if (use_regex_)
    append_words(scanner_, text, parts);
  else
    parts.push_back({0, static_cast<uint32_t>(text.size())});
  return {};
}

}  // namespace mote::tokenizer
