// Pre-tokenizer `ByteLevel`: GPT-2's words, in the byte-level alphabet.
// Source: tokenizers pre_tokenizers/byte_level.rs
#pragma once

#include "tokenizer/pretokenize/pretokenizer.h"
#include "tokenizer/pretokenize/word_scanner.h"

namespace mote::tokenizer {

class ByteLevel final : public Rewriter {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex, bool spell)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex), spell_(spell) {}

 protected:
  Status change(AlignedText& text, std::vector<Piece>& parts) const override;

 private:
  bool add_prefix_space_;
  bool use_regex_;
  bool spell_;
  Gpt2Scanner scanner_;
};

// `ByteLevel` without a prefix for a model that reads bytes: it only cuts, or does nothing.
class ByteLevelSplit final : public Cutter {
 public:
  explicit ByteLevelSplit(bool use_regex) : use_regex_(use_regex) {}
  const Scanner* scanner() const override { return use_regex_ ? &scanner_ : nullptr; }

 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;

 private:
  bool use_regex_;
  Gpt2Scanner scanner_;
};

}  // namespace mote::tokenizer
