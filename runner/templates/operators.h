// Python's operators. Errors: all throw Error with Python's words.
#pragma once

#include "runner/templates/runtime.h"

namespace mote::jinja {

Value arithmetic(Runtime& runtime, Operator op, const Value& a, const Value& b);
Value negative(Runtime& runtime, const Value& value);
Value positive(Runtime& runtime, const Value& value);
// One link of a comparison, `in` included.
bool compare(Runtime& runtime, Operator op, const Value& a, const Value& b);
// a < b, for sorting.
bool is_less(Runtime& runtime, const Value& a, const Value& b, int depth = 0);
bool contains(Runtime& runtime, const Value& container, const Value& item);

// a + b for what is known to be texts; a safe one escapes the other.
Text concatenate(Runtime& runtime, const Text& a, const Text& b);
Text escape_html(Runtime& runtime, const Text& text);  // safe ones stay as they are

}  // namespace mote::jinja
