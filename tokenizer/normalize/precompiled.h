// Normalizer `Precompiled`: the character map of a SentencePiece model as Hugging Face applies it, grapheme by
// grapheme. Source: tokenizers normalizers/precompiled.rs; spm_precompiled lib.rs
#pragma once

#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(map) {}
  Status apply(AlignedText& text) const override;

 private:
  Charsmap map_;
};

}  // namespace mote::tokenizer
