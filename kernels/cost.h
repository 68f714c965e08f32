// What an instruction must do at least, for the profiler.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace mote {

// Bytes that a tensor takes; dimensions that repeat one element (stride 0) count once.
int64_t tensor_bytes(const Tensor& tensor);

// What `op` says, or for an op that says nothing: its operands read or written once, no products.
// Cost: a few dozen operations, no allocation. Valid after the instruction has run.
Cost cost_of(const Op& op, const Call& call, const KernelContext& context);

// Op::cost of the ops with weights or a state.
Cost linear_cost(const Call& call, const KernelContext& context);     // mote.linear, mote.gated_linear
Cost embedding_cost(const Call& call, const KernelContext& context);  // the rows that are read, not the table
Cost attention_cost(const Call& call, const KernelContext& context);  // the keys and values that are seen
Cost moe_cost(const Call& call, const KernelContext& context);        // the experts that the router chose
Cost matmul_cost(const Call& call, const KernelContext& context);

}  // namespace mote
