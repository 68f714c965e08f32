// A part of the grammars of the Python package lark. docs/constrained-output.md has the list.
#pragma once

#include <string_view>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

// A text matches if lark's Earley parser with the lexer "dynamic_complete" reads it from the rule `start`.
// Errors: kInvalidArgument with line and column.
Result<Rules> parse_lark(std::string_view source, WorkBudget& budget);

}  // namespace mote::constraints
