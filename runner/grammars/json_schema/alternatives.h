// Schemas without references and choices, from those that have them.
#pragma once

#include <vector>

#include "base/status.h"
#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

// Replaces $ref, allOf, anyOf and oneOf: a value is accepted by all of `schemas` if it is by all of one of the results.
// Left out are schemas `false`, and branches that lead back to the schema whose branches they are: those accept nothing
// more. Errors: kInvalidArgument, also for a schema that is nothing but itself.
Result<std::vector<Conjunction>> alternatives(const Json& document, const Conjunction& schemas);

}  // namespace mote::constraints
