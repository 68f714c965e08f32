// Work to try kernels of products with.
#pragma once

#include "kernels/ops/linear/activations.h"
#include "kernels/trial.h"

namespace mote {

// A product of such a weight, and inputs of a mode that multiplies tiles, with one token or with kRegisterTokens.
// Without work where the weight is so small that caches keep it, or where there are more tokens: then kernels do not
// wait for memory.
Trial product_trial(const Tensor& weight, ActivationMode mode, int64_t tokens);

}  // namespace mote
