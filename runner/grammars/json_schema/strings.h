// Rules for JSON strings.
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
// A text as it stands in a JSON string, without the quotes.
std::string json_escaped(std::string_view text);
// Any string with its quotes, all escapes allowed.
ExpressionId append_any_string(Rules& rules);

// A regular expression for a format of JSON Schema. ".": any string matches; empty: the format is unknown.
std::string_view format_pattern(std::string_view name);
// The names of all formats that are known, such as "date, time, ...".
std::string format_names();

}  // namespace mote::constraints
