#include "tokenizer/model/model.h"

#include "base/parts.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/sentencepiece_bpe.h"
#include "tokenizer/model/unigram.h"
#include "tokenizer/model/wordpiece.h"
#include "tokenizer/parts.h"

namespace mote::tokenizer {
namespace {

using MadeModel = Result<std::unique_ptr<Model>>;

template <fb::ModelKind kKind, typename T>
MadeModel made_model(const fb::Segment& segment) {
  MOTE_REQUIRE_PART(part_of(kKind), Code::kInvalidTokenizer);
  if constexpr (requires { T::make(segment); })
    return T::make(segment);
  else
    return std::unique_ptr<Model>(std::make_unique<T>(segment));
}

}  // namespace

Status Model::encode_ids(std::string_view piece, std::vector<int32_t>& ids) const {
  thread_local std::vector<Token> tokens;
  tokens.clear();
  MOTE_RETURN_IF_ERROR(encode(piece, tokens));
  for (const Token& token : tokens) ids.push_back(token.id);
  return {};
}

MadeModel make_model(const fb::Segment& segment) {
  const fb::Model& model = *segment.model();
  MOTE_REQUIRE(model.unk_id() >= kMissingId &&
                   (model.unk_id() < 0 || static_cast<uint32_t>(model.unk_id()) < segment.token_flags()->size()),
               Code::kInvalidTokenizer, "model.unk_id = %d: must be below %u", model.unk_id(),
               segment.token_flags()->size());
  switch (model.kind()) {
    case fb::ModelKind::bpe: return made_model<fb::ModelKind::bpe, Bpe>(segment);
    case fb::ModelKind::byte_level_bpe: return made_model<fb::ModelKind::byte_level_bpe, ByteLevelBpe>(segment);
    case fb::ModelKind::unigram: return made_model<fb::ModelKind::unigram, Unigram>(segment);
    case fb::ModelKind::wordpiece: return made_model<fb::ModelKind::wordpiece, WordPiece>(segment);
    case fb::ModelKind::wordlevel: return made_model<fb::ModelKind::wordlevel, WordLevel>(segment);
    case fb::ModelKind::sentencepiece_bpe:
      return made_model<fb::ModelKind::sentencepiece_bpe, SentencePieceBpe>(segment);
    case fb::ModelKind::sentencepiece_unigram:
      return made_model<fb::ModelKind::sentencepiece_unigram, SentencePieceUnigram>(segment);
  }
  return Status(Code::kInvalidTokenizer, format("model.kind = %d: must be at most %d", static_cast<int>(model.kind()),
                                                static_cast<int>(fb::ModelKind::MAX)));
}

}  // namespace mote::tokenizer
