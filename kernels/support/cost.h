// The least memory that an instruction must read and write, for the profiler: what implementations of Op::cost share.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace mote {

// Bytes of a tensor; a dimension that repeats one element (stride 0) counts once.
int64_t tensor_bytes(const Tensor& tensor);
// Bytes of all inputs and outputs.
int64_t operand_bytes(const Call& call);

}  // namespace mote
