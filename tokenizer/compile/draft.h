// A tokenizer on its way from a file to a segment.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

struct Draft {
  fb::SegmentT segment;  // all but tokens, token_flags, alias_ids and slots
  // Of each id the model's spelling, and the one that decoding sees where an added token has it.
  std::vector<std::optional<std::string>> model_tokens;
  std::vector<std::optional<std::string>> added_tokens;
  std::vector<bool> special;
  bool unspell = false;  // tokens are spelled in the byte-level alphabet and stored as bytes

  // Makes room for `id`. Errors: kInvalidTokenizer if it is too large.
  void set_model_token(int32_t id, std::string text);
  void set_added_token(int32_t id, std::string text);
  void mark_special(int32_t id);
};

// Writes the segment and checks that it opens. Errors: kInvalidTokenizer.
Result<std::vector<std::byte>> finish(Draft draft);

}  // namespace mote::tokenizer
