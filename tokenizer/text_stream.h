// The text of token ids that come one after another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace mote {

// What push and finish return, joined, is what the ids decode to behind the context. Every part consists of whole
// characters. Source: tokenizers tokenizer/mod.rs (DecodeStream)
class TextStream {
 public:
  // tokenizer: outlives the stream; nullptr: there is never any text
  // context: ids before the first one, whose text is not given again but may change what follows it, as a space that is
  // only dropped at the start of a text
  explicit TextStream(const Tokenizer* tokenizer, bool skip_special = false, std::span<const int32_t> context = {});

  // Adds an id and returns the characters that are complete now.
  std::string push(int32_t id);
  // Returns what was held back, with U+FFFD for the beginning of a character.
  std::string finish();

 private:
  std::string push_bytes(int32_t id);
  std::string push_decoded(int32_t id);

  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;       // byte-level: the beginning of a character
  std::vector<int32_t> ids_;  // else: the ids that the next text may depend on
  std::string given_;         // the text of ids_ that was given
};

}  // namespace mote
