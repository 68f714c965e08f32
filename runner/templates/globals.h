// Functions that every template has: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
#pragma once

#include <string_view>

#include "runner/templates/runtime.h"

namespace mote::jinja {

// kMissing if there is none of the name.
Value find_global(std::string_view name);

}  // namespace mote::jinja
