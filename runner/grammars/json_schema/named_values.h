// Values that a schema names: enum and const.
#pragma once

#include <optional>
#include <vector>

#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

// Those of enum and const that all the schemas accept; nullopt: no schema names any.
// Errors: kInvalidArgument if a keyword beside them would have to be checked that cannot be.
Result<std::optional<std::vector<const Json*>>> accepted_values(const Conjunction& schemas);

}  // namespace mote::constraints
