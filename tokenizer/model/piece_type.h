// What the pieces of a SentencePiece model are.
// Source: sentencepiece sentencepiece_model.proto (ModelProto.SentencePiece.Type), sentencepiece_processor.cc
#pragma once

#include <array>

#include "tokenizer/model/model.h"

namespace mote::tokenizer {

enum PieceType : uint8_t {
  kPieceNormal = 1,
  kPieceUnknown = 2,
  kPieceControl = 3,
  kPieceUserDefined = 4,
  kPieceUnused = 5,
  kPieceByte = 6
};

// Errors: kInvalidTokenizer if there is not one type an id.
Status check_piece_types(const fb::Segment& segment);

// Appends tokens as SentencePiece does: an unknown one becomes its bytes, or joins an unknown one before it.
class UnknownAppender {
 public:
  UnknownAppender(int32_t unk_id, bool byte_fallback, const std::array<int32_t, 256>& byte_ids)
      : unk_id_(unk_id), byte_fallback_(byte_fallback), byte_ids_(byte_ids) {}

  void append(int32_t id, std::string_view text, size_t begin, std::vector<Token>& tokens);

 private:
  int32_t unk_id_;
  bool byte_fallback_;
  const std::array<int32_t, 256>& byte_ids_;
  bool after_unknown_ = false;
};

}  // namespace mote::tokenizer
