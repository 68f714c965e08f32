// Pre-tokenizer `Metaspace`: spaces become a visible character, which starts a piece.
// Source: tokenizers pre_tokenizers/metaspace.rs
#pragma once

#include <string>

#include "tokenizer/pretokenize/pretokenizer.h"

namespace mote::tokenizer {

class Metaspace final : public Rewriter {
 public:
  Metaspace(char32_t replacement, fb::PrependScheme scheme, bool split);

 protected:
  Status change(AlignedText& text, std::vector<Piece>& parts) const override;

 private:
  std::string replacement_;
  fb::PrependScheme scheme_;
  bool split_;
};

}  // namespace mote::tokenizer
