#include "tokenizer/model/model.h"

#include "tokenizer/model/bpe.h"
#include "tokenizer/model/sentencepiece_bpe.h"
#include "tokenizer/model/unigram.h"
#include "tokenizer/model/wordpiece.h"

namespace mote::tokenizer {

Status Model::encode_ids(std::string_view piece, std::vector<int32_t>& ids) const {
  thread_local std::vector<Token> tokens;
  tokens.clear();
  MOTE_RETURN_IF_ERROR(encode(piece, tokens));
  for (const Token& token : tokens) ids.push_back(token.id);
  return {};
}

Result<std::unique_ptr<Model>> make_model(const fb::Segment& segment) {
  const fb::Model& model = *segment.model();
  MOTE_REQUIRE(model.unk_id() >= kMissingId &&
                   (model.unk_id() < 0 || static_cast<uint32_t>(model.unk_id()) < segment.token_flags()->size()),
               Code::kInvalidTokenizer, "model.unk_id = %d: must be below %u", model.unk_id(),
               segment.token_flags()->size());
  switch (model.kind()) {
    case fb::ModelKind::bpe: return Bpe::make(segment);
    case fb::ModelKind::byte_level_bpe: return ByteLevelBpe::make(segment);
    case fb::ModelKind::unigram: return Unigram::make(segment);
    case fb::ModelKind::wordpiece: return std::unique_ptr<Model>(std::make_unique<WordPiece>(segment));
    case fb::ModelKind::wordlevel: return std::unique_ptr<Model>(std::make_unique<WordLevel>(segment));
    case fb::ModelKind::sentencepiece_bpe: return SentencePieceBpe::make(segment);
    case fb::ModelKind::sentencepiece_unigram: return SentencePieceUnigram::make(segment);
  }
  return Status(Code::kInvalidTokenizer, format("model.kind = %d: must be at most %d", static_cast<int>(model.kind()),
                                                static_cast<int>(fb::ModelKind::MAX)));
}

}  // namespace mote::tokenizer
