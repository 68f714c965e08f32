// {"String": ...} or {"Regex": ...}
#pragma once

#include <string>

#include "tokenizer/compile/json.h"

namespace mote::tokenizer {

// Errors: kInvalidTokenizer naming the field if it is neither, does not compile, or backtracks without end on short
// texts.
Status read_pattern(const Field& field, std::string& pattern, bool& is_regex);

}  // namespace mote::tokenizer
