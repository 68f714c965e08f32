// What runs mote.linear and mote.gated_linear: threads split the output's columns into strips.
#pragma once

#include "kernels/op.h"
#include "kernels/ops/linear/product.h"
#include "kernels/support/gate_function.h"

namespace mote {

enum LinearInput : size_t { kX = 0, kWeight, kBias, kResidual };

struct LinearParams {
  Product product;
  FusedNorm norm;
  GateFunction function;
  size_t norm_input;
};

size_t linear_scratch_bytes(const Call& call, int num_threads);
Status run_linear(const Call& call, KernelContext& context);
Status run_gated_linear(const Call& call, KernelContext& context);

}  // namespace mote
