// Pre-tokenizer `UnicodeScripts`: cuts where the script changes.
// Source: tokenizers pre_tokenizers/unicode_scripts/pre_tokenizer.rs
#pragma once

#include "tokenizer/pretokenize/pretokenizer.h"

namespace mote::tokenizer {

// What stands before the first character that has a script is dropped, as Hugging Face does.
class UnicodeScripts final : public Cutter {
 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;
};

}  // namespace mote::tokenizer
