// Pre-tokenizers that cut where single characters have a property: `WhitespaceSplit`, `Punctuation`, `Digits`,
// `CharDelimiterSplit`.
// Source: tokenizers pre_tokenizers/{whitespace,punctuation,digits,delimiter}.rs
#pragma once

#include "tokenizer/pretokenize/pretokenizer.h"

namespace mote::tokenizer {

using CharacterTest = bool (*)(char32_t);

class CharacterSplit final : public Cutter {
 public:
  CharacterSplit(CharacterTest test, fb::Behavior behavior) : test_(test), behavior_(behavior) {}

 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;

 private:
  CharacterTest test_;
  fb::Behavior behavior_;
};

// `CharDelimiterSplit`
class DelimiterSplit final : public Cutter {
 public:
  explicit DelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}

 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;

 private:
  char32_t delimiter_;
};

// `BertPreTokenizer`: white space goes, punctuation stands alone.
class BertSplit final : public Cutter {
 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;
};

// `Whitespace`: \w+|[^\w\s]+
class WordOrSignSplit final : public Cutter {
 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;
};

}  // namespace mote::tokenizer
