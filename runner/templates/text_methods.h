// Operations on texts that filters, tests and methods share.
#pragma once

#include "runner/templates/runtime.h"

namespace mote::jinja {

bool is_lower_case(Runtime& runtime, const Text& text);  // str.islower
bool is_upper_case(Runtime& runtime, const Text& text);
Text to_upper(Runtime& runtime, const Text& text);
Text to_lower(Runtime& runtime, const Text& text);
Text capitalize(Runtime& runtime, const Text& text);
// chars: what to strip; none: white space
Text strip(Runtime& runtime, const Text& text, const Value& chars, bool left, bool right);
Text replace(Runtime& runtime, const Text& text, const Text& old_text, const Text& new_text, int64_t count);
Text center(Runtime& runtime, const Text& text, int64_t width, const Text& fill);
Text join(Runtime& runtime, const Text& separator, const Value& items, bool convert);
// str.split (or rsplit) with a separator, or at white space if it is none
List* split(Runtime& runtime, const Text& text, const Value& separator, int64_t max_splits, bool from_right);
List* split_lines(Runtime& runtime, const Text& text, bool keep_ends);
// str.format
Text brace_format(Runtime& runtime, const Text& pattern, const Arguments& arguments);

}  // namespace mote::jinja
