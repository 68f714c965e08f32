// Normalizer `BertNormalizer`.
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

class BertNormalizer final : public Normalizer {
 public:
  struct Options {
    bool clean_text = true;
    bool handle_chinese_chars = true;
    bool strip_accents = true;
    bool lowercase = true;
  };
  explicit BertNormalizer(const Options& options) : options_(options) {}
  Status apply(AlignedText& text) const override;

 private:
  Options options_;
};

}  // namespace mote::tokenizer
