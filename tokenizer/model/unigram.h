// Unigram: the segmentation whose tokens have the largest sum of scores.
// Source: arXiv 1808.06226; tokenizers models/unigram/model.rs (encode_optimized); sentencepiece unigram_model.cc
#pragma once

#include <array>

#include "tokenizer/model/model.h"

namespace mote::tokenizer {

// Hugging Face's: sums in double precision, runs of unknown characters are one token.
class Unigram final : public Model {
 public:
  static Result<std::unique_ptr<Model>> make(const fb::Segment& segment);
  Status encode(std::string_view piece, std::vector<Token>& tokens) const override;

 private:
  explicit Unigram(const fb::Segment& segment);
  Status append(std::string_view text, uint32_t begin, std::vector<Token>& tokens) const;

  VocabularyView vocabulary_;
  TrieView trie_;
  const flatbuffers::Vector<double>* scores_;
  double unk_score_;
  int32_t unk_id_;
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_{};
};

// SentencePiece's: sums in single precision, user-defined symbols always win, unused ones never.
class SentencePieceUnigram final : public Model {
 public:
  static Result<std::unique_ptr<Model>> make(const fb::Segment& segment);
  Status encode(std::string_view piece, std::vector<Token>& tokens) const override;

 private:
  explicit SentencePieceUnigram(const fb::Segment& segment);

  TrieView trie_;
  const flatbuffers::Vector<double>* scores_;
  const flatbuffers::Vector<uint8_t>* types_;
  float unk_score_;
  int32_t unk_id_;
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace mote::tokenizer
