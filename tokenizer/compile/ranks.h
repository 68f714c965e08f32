// Vocabularies that are ranks of byte strings: tiktoken and Tekken.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/compile/draft.h"

namespace mote::tokenizer {

// A byte-level BPE whose token of rank r has id first_id + r. Pairs merge into every token that they concatenate to, in
// the order of ranks. `ranks[r]` is empty for a rank that no token has. Errors: kInvalidTokenizer naming the byte that
// is missing or the rank whose bytes another one has.
Status fill_ranks(const std::vector<std::string>& ranks, int32_t first_id, const std::string& pattern, Draft& draft);

// Tokens that are found in text by their spelling. `spelled`: in ascending order of ids.
void add_special_tokens(const std::vector<std::pair<std::string, int32_t>>& spelled, Draft& draft);

}  // namespace mote::tokenizer
