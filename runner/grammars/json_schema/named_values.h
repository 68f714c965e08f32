// The values that a schema names with enum and const.
#pragma once

#include <optional>
#include <vector>

#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

// The named values that all the schemas accept; nullopt: no schema names any. Errors: kInvalidArgument for a keyword
// beside enum or const that named values cannot be checked against.
Result<std::optional<std::vector<const Json*>>> accepted_values(const Conjunction& schemas);

}  // namespace mote::constraints
