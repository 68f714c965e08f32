// Normalizers `NFC`, `NFD`, `NFKC` and `NFKD`.
// Source: Unicode Standard Annex 15; tokenizers normalizers/unicode.rs
#pragma once

#include "tokenizer/normalize/normalizer.h"

namespace mote::tokenizer {

// Decomposes all of `text`, with the marks in canonical order.
void decompose(AlignedText& text, bool compatibility);

class UnicodeForm final : public Normalizer {
 public:
  UnicodeForm(bool compatibility, bool compose) : compatibility_(compatibility), compose_(compose) {}
  Status apply(AlignedText& text) const override;
  bool leaves_alone(std::string_view text) const override;

 private:
  bool compatibility_;
  bool compose_;
};

}  // namespace mote::tokenizer
