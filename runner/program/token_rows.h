// Whether the tokens of a call may belong to different sequences.
#pragma once

#include <cstdint>

#include "runner/program/program.h"

namespace mote {

// Whether everything that a method computes for a token follows from that token's inputs and its sequence's states, so
// that Executor::run_together gives each sequence what it would get alone. Ops with a state see to this themselves; an
// op that is not known here is taken for one that mixes tokens. Errors: kUnsupportedOp naming the first instruction
// that lets one token's row depend on another's. Cost: O(instructions).
Status check_token_rows(const Bound& bound, uint32_t method);

}  // namespace mote
