#include "kernels/support/cost.h"

#include "kernels/formats.h"

namespace mote {

int64_t tensor_bytes(const Tensor& tensor) {
  int64_t elements = 1;
  if (tensor.bits == 0) {
    for (int dim = 0; dim < tensor.rank; ++dim) elements *= tensor.stride(dim) == 0 ? 1 : tensor.size(dim);
    return elements * dtype_bytes(tensor.dtype);
  }
  for (int dim = 0; dim < tensor.rank - 2; ++dim) elements *= tensor.size(dim);
  return elements * matrix_bytes(tensor);
}

int64_t operand_bytes(const Call& call) {
  int64_t bytes = 0;
  for (const Tensor* input : call.inputs) bytes += input == nullptr ? 0 : tensor_bytes(*input);
  for (const Tensor* output : call.outputs) bytes += tensor_bytes(*output);
  return bytes;
}

Cost operand_cost(const Call& call, const KernelContext&) { return {operand_bytes(call), 0}; }

}  // namespace mote
