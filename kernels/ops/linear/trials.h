// Work to try kernels of products with.
#pragma once

#include "kernels/ops/linear/activations.h"
#include "kernels/trial.h"

namespace mote {

// A product of such a weight, and inputs of a mode that multiplies tiles, with one token, with kRegisterTokens or, as
// many threads at once as share a unit, with some blocks of tokens. Without work where no kernels differ in how they
// come to what they multiply: where the weight is so small that caches keep it, or there are more tokens and no kSme.
Trial product_trial(const Tensor& weight, ActivationMode mode, int64_t tokens);

}  // namespace mote
