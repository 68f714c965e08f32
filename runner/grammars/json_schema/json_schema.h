// JSON Schema (draft 2020-12) to rules. docs/constrained-output.md has the keywords and what is made of each.
#pragma once

#include <string_view>

#include "base/status.h"
#include "runner/grammars/expression.h"
#include "runner/grammars/grammar.h"

namespace mote::constraints {

// Every text of the rules is a JSON value that the schema accepts.
// Errors: kInvalidArgument with the JSON pointer and name of what is not supported.
Result<Rules> parse_json_schema(std::string_view source, JsonWhitespace whitespace, WorkBudget& budget);

}  // namespace mote::constraints
