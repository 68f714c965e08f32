// JSON strings as texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

// Characters inside of a JSON string, each written in one way: as itself, or \" \\ \n ... \u001f where it must be
// escaped.
ExpressionId encode_json_characters(Rules& rules, std::vector<CodePointRange> characters);
// The same for a text, without the quotes.
std::string json_escaped(std::string_view text);
// Any string with its quotes, all escapes allowed.
ExpressionId append_any_string(Rules& rules);

// A regular expression for a format of JSON Schema; empty: it is not known. "." where it asks for nothing.
std::string_view format_pattern(std::string_view name);
// "date, time, ..."
std::string format_names();

// Whether the pattern, as JSON Schema means it, has a match in the text. Errors: kInvalidArgument for a bad pattern.
Result<bool> has_match(std::string_view pattern, std::string_view text);

}  // namespace mote::constraints
