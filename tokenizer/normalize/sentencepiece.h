// The normalizer of a SentencePiece model: its character map, white space, and the dummy prefix.
// Source: sentencepiece normalizer.cc (Normalizer::Normalize)
#pragma once

#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class SentencePieceNormalizer final : public Normalizer {
 public:
  struct Options {
    bool add_dummy_prefix = true;
    bool remove_extra_whitespaces = true;
    bool escape_whitespaces = true;
    bool whitespace_as_suffix = false;
  };
  SentencePieceNormalizer(const Options& options, Charsmap map, TrieView user_defined)
      : options_(options), map_(map), user_defined_(user_defined) {}

  Status apply(AlignedText& text) const override;

 private:
  Options options_;
  Charsmap map_;
  TrieView user_defined_;  // left as they are
};

}  // namespace mote::tokenizer
