// JSON to values.
#pragma once

#include <string_view>

#include "runner/templates/runtime.h"

namespace mote::jinja {

// Reads one JSON text. is_marked: its strings, keys included, count as text from a user. NaN and Infinity are refused,
// as are integers beyond 64 bits. Errors: throws Error naming the place; also when it nests too deeply or the budget is
// spent.
Value read_json(Runtime& runtime, std::string_view json, bool is_marked);

}  // namespace mote::jinja
