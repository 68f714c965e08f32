// What an instruction must do at least, for the profiler: what the ops' Op::cost share.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace mote {

// Bytes that a tensor takes; dimensions that repeat one element (stride 0) count once.
int64_t tensor_bytes(const Tensor& tensor);
// Of all inputs and outputs.
int64_t operand_bytes(const Call& call);

}  // namespace mote
