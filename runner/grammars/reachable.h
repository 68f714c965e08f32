// What can be told of rules before they are compiled.
#pragma once

#include <vector>

#include "runner/grammars/expression.h"

namespace mote::constraints {

// The rules that the root leads to by calls. Cost: O(expressions).
std::vector<bool> reachable_rules(const Rules& rules);
// The rules that match the empty text. Cost: O(expressions).
std::vector<bool> nullable_rules(const Rules& rules);

}  // namespace mote::constraints
