// Byte pair encoding over characters, and over bytes.
// Source: tokenizers models/bpe/model.rs
#pragma once

#include <array>
#include <string>

#include "tokenizer/model/merge.h"
#include "tokenizer/model/model.h"
#include "tokenizer/segment/junctions.h"

namespace mote::tokenizer {

class Bpe final : public Model {
 public:
  static Result<std::unique_ptr<Model>> make(const fb::Segment& segment);
  Status encode(std::string_view piece, std::vector<Token>& tokens) const override;
  Status encode_ids(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  explicit Bpe(const fb::Segment& segment);
  // The id that a whole piece is without merging, -1: none.
  int32_t unmerged(std::string_view piece) const { return ignore_merges_ ? vocabulary_.find(piece) : -1; }
  // body(word, its place) for parts of a piece that no merge crosses.
  template <typename Body> Status for_each_word(std::string_view piece, const Body& body) const;
  // Errors: as encode.
  Status merge(std::string_view part, std::vector<Symbol>& symbols) const;
  Status append_symbols(std::string_view word, std::vector<Symbol>& symbols) const;
  int32_t find_character(std::string_view character, bool first, bool last, std::string& spelled) const;
  bool append_bytes(std::string_view spelled, std::vector<Symbol>& symbols) const;

  VocabularyView vocabulary_;
  MergesView merges_;
  JunctionsView junctions_;
  uint32_t cache_owner_;
  int32_t unk_id_;
  bool fuse_unk_;
  bool byte_fallback_;
  bool ignore_merges_;
  std::string prefix_;
  std::string suffix_;
  std::string word_start_;
  std::array<int32_t, 256> byte_ids_{};
};

// Byte-level: the alphabet has every byte that UTF-8 may have, so that every piece of bytes can be encoded.
class ByteLevelBpe final : public Model {
 public:
  static Result<std::unique_ptr<Model>> make(const fb::Segment& segment);
  Status encode(std::string_view piece, std::vector<Token>& tokens) const override;
  Status encode_ids(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  explicit ByteLevelBpe(const fb::Segment& segment);
  // The id that a whole piece is without merging, -1: it must be merged.
  int32_t whole(std::string_view piece) const;
  void merge(std::string_view part, std::vector<Symbol>& symbols) const;

  VocabularyView vocabulary_;
  MergesView merges_;
  JunctionsView junctions_;
  bool ignore_merges_;
  uint32_t cache_owner_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace mote::tokenizer
