// Work to try kernels of attention with.
#pragma once

#include "kernels/op.h"
#include "kernels/trial.h"

namespace mote {

// What a head of this cache, in float32, gives the queries that read it in one step of `tokens` tokens of `num_heads`
// heads. Without work for so many that kernels do not wait for memory, and for caches that are small beside any weight.
Trial attention_trial(const StateShape& shape, int64_t num_heads, int64_t tokens);

}  // namespace mote
