// text % values. Source: Python's "printf-style String Formatting"
#pragma once

#include "runner/templates/runtime.h"

namespace mote::jinja {

Text percent_format(Runtime& runtime, const Text& pattern, const Value& values);

}  // namespace mote::jinja
