// Turns schemas with references and choices into lists of schemas that have neither.
#pragma once

#include <vector>

#include "base/status.h"
#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

// Replaces $ref, allOf, anyOf and oneOf: all of `schemas` accept a value if and only if all schemas of one of the
// results do. Results that accept nothing are left out: those with a schema `false`, and those with a branch that leads
// back to the schema that it is a branch of. Errors: kInvalidArgument, also for a schema that refers to nothing but
// itself.
Result<std::vector<Conjunction>> alternatives(const Json& document, const Conjunction& schemas);

}  // namespace mote::constraints
