// Values as text: Python's str, repr and names of types.
#pragma once

#include <string>

#include "runner/templates/runtime.h"

namespace mote::jinja {

// type(value).__name__
const char* type_name(const Value& value);
// How Jinja2 names the type in messages about attributes: "dict object".
std::string object_type(const Value& value);
std::string undefined_message(Runtime& runtime, const Value& value);

// The shortest digits that read back as the same number, as Python writes them.
std::string float_repr(double value);

// str() and repr(). Cost: O(what is written). Errors: throws Error when the value nests too deeply.
void print(Runtime& runtime, TextBuilder& out, const Value& value);
void print_repr(Runtime& runtime, TextBuilder& out, const Value& value, int depth = 0);
Text to_text(Runtime& runtime, const Value& value);       // str(): never safe
Text to_soft_text(Runtime& runtime, const Value& value);  // likewise, but texts stay as they are, safe or not
Text to_repr(Runtime& runtime, const Value& value);
std::string repr_string(Runtime& runtime, const Value& value);

}  // namespace mote::jinja
