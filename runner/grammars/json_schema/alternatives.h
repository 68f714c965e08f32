// Turns schemas with references and choices into lists of schemas that have neither.
#pragma once

#include <functional>

#include "base/status.h"
#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

// Replaces $ref, allOf, anyOf and oneOf: all of `schemas` accept a value if and only if all schemas of one of the
// conjunctions that `visit` is given do. Those that accept nothing are left out: with a schema `false`, or with a
// branch that leads back to the schema that it is a branch of. Errors: those of `visit`; kInvalidArgument, also for a
// schema that refers to nothing but itself.
Status for_each_alternative(const Conjunction& schemas, const std::function<Status(const Conjunction&)>& visit);

}  // namespace mote::constraints
