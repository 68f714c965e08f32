// SentencePiece's byte pair encoding: the pair whose piece has the largest score merges first.
// Source: sentencepiece bpe_model.cc
#pragma once

#include <array>

#include "tokenizer/model/model.h"

namespace mote::tokenizer {

class SentencePieceBpe final : public Model {
 public:
  static Result<std::unique_ptr<Model>> make(const fb::Segment& segment);
  Status encode(std::string_view piece, std::vector<Token>& tokens) const override;

 private:
  explicit SentencePieceBpe(const fb::Segment& segment);

  VocabularyView vocabulary_;
  TrieView user_defined_;
  const flatbuffers::Vector<double>* scores_;
  const flatbuffers::Vector<uint8_t>* types_;
  int32_t unk_id_;
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace mote::tokenizer
