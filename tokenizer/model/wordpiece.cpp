#include "tokenizer/model/wordpiece.h"

#include <algorithm>

#include "tokenizer/segment/text.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

Status append_unknown(std::string_view piece, int32_t unk_id, std::vector<Token>& tokens) {
  MOTE_REQUIRE(unk_id >= 0, Code::kInvalidArgument, "the text needs the unknown token, which the vocabulary lacks");
  tokens.push_back({unk_id, 0, static_cast<uint32_t>(piece.size())});
  return {};
}

}  // namespace

WordPiece::WordPiece(const fb::Segment& segment)
    : vocabulary_(segment),
      unk_id_(segment.model()->unk_id()),
      prefix_(text_of(segment.model()->continuing_subword_prefix())),
      max_characters_(segment.model()->max_input_chars_per_word()),
      longest_(segment.model()->longest_token()) {}

bool WordPiece::append_parts(std::string_view piece, std::vector<Token>& tokens) const {
  std::string candidate;
  for (size_t begin = 0; begin < piece.size();) {
    const std::string_view prefix = begin > 0 ? std::string_view(prefix_) : std::string_view();
    size_t end = std::min(piece.size(), begin + longest_);
    while (end < piece.size() && (static_cast<unsigned char>(piece[end]) & 0xC0) == 0x80) ++end;
    int32_t id = -1;
    while (end > begin) {
      candidate = prefix;
      candidate += piece.substr(begin, end - begin);
      id = vocabulary_.find(candidate);
      if (id >= 0) break;
      end -= last_character(piece.substr(begin, end - begin)).length;
    }
    if (id < 0) return false;
    tokens.push_back({id, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
  return true;
}

Status WordPiece::encode(std::string_view piece, std::vector<Token>& tokens) const {
  if (count_characters(piece) > max_characters_) return append_unknown(piece, unk_id_, tokens);
  const size_t before = tokens.size();
  if (append_parts(piece, tokens)) return {};
  tokens.resize(before);
  return append_unknown(piece, unk_id_, tokens);
}

Status WordLevel::encode(std::string_view piece, std::vector<Token>& tokens) const {
  const int32_t id = vocabulary_.find(piece);
  if (id < 0) return append_unknown(piece, unk_id_, tokens);
  tokens.push_back({id, 0, static_cast<uint32_t>(piece.size())});
  return {};
}

}  // namespace mote::tokenizer
