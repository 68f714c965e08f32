// What the fuzz target of grammars does with an input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote::test {

// The first byte names the syntax and the white space, the second seeds the text that is drawn; the rest is the
// grammar, compiled for a small vocabulary within a small budget. kInternal: compiling took more than its budget, a
// mask is not what trying each token gives, a token that is allowed is refused, or a text that is not complete cannot
// go on.
Status run_grammar(std::string_view input);

// Grammars in every syntax, as seeds.
const std::vector<std::string>& grammar_seeds();
// Parts of grammars, to be put anywhere.
const std::vector<std::string>& grammar_pieces();

}  // namespace mote::test
