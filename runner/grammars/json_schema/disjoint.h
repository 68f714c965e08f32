// Whether the branches of a oneOf surely have no value in common.
#pragma once

#include "base/status.h"
#include "runner/grammars/json_schema/flattening.h"

namespace mote::constraints {

// Errors: kInvalidArgument for two branches that may accept the same value, as far as can be told.
Status check_disjoint(const Choice& choice);

}  // namespace mote::constraints
