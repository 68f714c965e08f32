// GBNF, the grammars of llama.cpp.
#pragma once

#include <string_view>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

// Errors: kInvalidArgument with line and column. Source: llama.cpp grammars/README.md
Result<Rules> parse_gbnf(std::string_view source, WorkBudget& budget);

}  // namespace mote::constraints
