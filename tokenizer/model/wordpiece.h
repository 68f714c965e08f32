// WordPiece: the longest token first, from left to right.
// Source: tokenizers models/wordpiece/mod.rs
#pragma once

#include <string>

#include "tokenizer/model/model.h"

namespace mote::tokenizer {

class WordPiece final : public Model {
 public:
  explicit WordPiece(const fb::Segment& segment);
  Status encode(std::string_view piece, std::vector<Token>& tokens) const override;

 private:
  bool append_parts(std::string_view piece, std::vector<Token>& tokens) const;

  VocabularyView vocabulary_;
  int32_t unk_id_;
  std::string prefix_;
  size_t max_characters_;
  size_t longest_;  // bytes of the longest token
};

// WordLevel: a piece is a token or unknown.
// Source: tokenizers models/wordlevel/mod.rs
class WordLevel final : public Model {
 public:
  explicit WordLevel(const fb::Segment& segment) : vocabulary_(segment), unk_id_(segment.model()->unk_id()) {}
  Status encode(std::string_view piece, std::vector<Token>& tokens) const override;

 private:
  VocabularyView vocabulary_;
  int32_t unk_id_;
};

}  // namespace mote::tokenizer
