// Whether the tokens of a call may belong to different sequences.
#pragma once

#include <cstdint>

#include "runner/program/program.h"

namespace mote {

// Whether everything that a method computes for a token follows from that token's inputs and its sequence's states, so
// that Executor::run_together gives each sequence what it would get alone. What an op does with rows its registration
// says (kernels/token_axis.h); one that says nothing counts as mixing them. Errors: kUnsupportedOp naming the first
// instruction that lets one token's row depend on another's. Cost: O(instructions).
Status check_token_rows(const Bound& bound, uint32_t method);

}  // namespace mote
