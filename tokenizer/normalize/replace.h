// Normalizer `Replace`: what a pattern matches becomes a fixed text.
#pragma once

#include <string>

#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/pretokenize/pattern.h"

namespace mote::tokenizer {

class Replace final : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status apply(AlignedText& text) const override;

 private:
  Pattern pattern_;
  std::string content_;
};

}  // namespace mote::tokenizer
