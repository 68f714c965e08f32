// What happens to the matches at which a text is cut. Source: tokenizers tokenizer/normalizer.rs
// (SplitDelimiterBehavior)
#pragma once

#include <vector>

#include "tokenizer/pretokenize/regex.h"
#include "tokenizer/segment/tables.h"
#include "tokenizer/text/aligned_text.h"

namespace mote::tokenizer {

// Appends the parts that stay. `spans`: matches and what lies between, without gaps.
void append_parts(fb::Behavior behavior, const std::vector<Span>& spans, std::vector<Piece>& parts);

}  // namespace mote::tokenizer
