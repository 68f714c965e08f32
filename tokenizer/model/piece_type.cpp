#include "tokenizer/model/piece_type.h"

namespace mote::tokenizer {

Status check_piece_types(const fb::Segment& segment) {
  const auto* types = segment.model()->piece_types();
  MOTE_REQUIRE(types != nullptr && types->size() == segment.token_flags()->size(), Code::kInvalidTokenizer,
               "model.piece_types has %u entries: must be %u, one an id", types == nullptr ? 0 : types->size(),
               segment.token_flags()->size());
  return {};
}

void UnknownAppender::append(int32_t id, std::string_view text, size_t begin, std::vector<Token>& tokens) {
  const auto first = static_cast<uint32_t>(begin);
  const auto end = static_cast<uint32_t>(begin + text.size());
  const bool unknown = id < 0 || id == unk_id_;
  if (unknown && byte_fallback_) {
    for (size_t i = 0; i < text.size(); ++i) {
      const int32_t byte_id = byte_ids_[static_cast<unsigned char>(text[i])];
      // The last byte has the place of all of them, the others none.
      tokens.push_back({byte_id >= 0 ? byte_id : unk_id_, first, i + 1 == text.size() ? end : first});
    }
  } else if (unknown && after_unknown_) {
    tokens.back().end = end;
  } else {
    tokens.push_back({unknown ? unk_id_ : id, first, end});
  }
  after_unknown_ = unknown;
}

}  // namespace mote::tokenizer
