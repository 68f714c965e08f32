#include "kernels/cost.h"

#include <algorithm>

#include "kernels/ops/linear/matrix.h"

namespace mote {
namespace {

int64_t operand_bytes(const Call& call) {
  int64_t bytes = 0;
  for (const Tensor* input : call.inputs) bytes += input == nullptr ? 0 : tensor_bytes(*input);
  for (const Tensor* output : call.outputs) bytes += tensor_bytes(*output);
  return bytes;
}

// Keys or values of `elements` numbers, with their scales.
int64_t cached_bytes(KvType type, int64_t elements) {
  switch (type) {
    case KvType::kFloat32: return 4 * elements;
    case KvType::kFloat16: return 2 * elements;
    case KvType::kInt8: return elements + 4 * elements / kKvGroup;
    case KvType::kInt4: return elements / 2 + 4 * elements / kKvGroup;
  }
  return 0;
}

}  // namespace

int64_t tensor_bytes(const Tensor& tensor) {
  int64_t elements = 1;
  if (tensor.bits == 0) {
    for (int dim = 0; dim < tensor.rank; ++dim) elements *= tensor.stride(dim) == 0 ? 1 : tensor.size(dim);
    return elements * dtype_bytes(tensor.dtype);
  }
  for (int dim = 0; dim < tensor.rank - 2; ++dim) elements *= tensor.size(dim);
  return elements * matrix_bytes(tensor);
}

Cost cost_of(const Op& op, const Call& call, const KernelContext& context) {
  return op.cost != nullptr ? op.cost(call, context) : Cost{operand_bytes(call), 0};
}

Cost linear_cost(const Call& call, const KernelContext&) {
  const Tensor& x = *call.inputs[0];
  return {operand_bytes(call), x.num_elements() * call.inputs[1]->size(0)};
}

Cost embedding_cost(const Call& call, const KernelContext&) {
  const Tensor& table = *call.inputs[1];
  const int64_t rows = call.inputs[0]->num_elements();
  return {tensor_bytes(*call.inputs[0]) + tensor_bytes(*call.outputs[0]) +
              rows * tensor_bytes(table) / std::max<int64_t>(1, table.size(0)),
          0};
}

Cost attention_cost(const Call& call, const KernelContext& context) {
  const Tensor& q = *call.inputs[0];  // [1, heads, T, head_dim]
  const Tensor& positions = *call.inputs[3];
  Cost cost{operand_bytes(call), 0};
  const auto state = call.integer("state");
  if (!state.ok() || q.size(2) == 0) return cost;
  const auto window = call.integer("window");
  int64_t begin = 0;
  for (const SequenceStates& sequence : context.sequences) {
    const KvCache& cache = sequence.kv_caches[static_cast<size_t>(*state)];
    const int64_t limit = window.ok() && *window > 0 ? *window + cache.num_sinks : INT64_MAX;
    const int64_t width = int64_t{cache.head_dim} + cache.value_head_dim;
    int64_t seen = 0;  // by all queries
    int64_t last = 0;
    for (int64_t t = begin; t < begin + sequence.tokens; ++t) {
      const int64_t position = positions.as<int64_t>()[t * positions.stride(1)];
      seen += std::min(position + 1, limit);
      last = std::max(last, position + 1);
    }
    const int64_t rows = limit == INT64_MAX ? last : std::min(last, limit + sequence.tokens - 1);
    cost.bytes += cached_bytes(cache.type, rows * cache.num_heads * width);
    cost.macs += seen * q.size(1) * width;
    begin += sequence.tokens;
  }
  return cost;
}

Cost moe_cost(const Call& call, const KernelContext&) {
  const Tensor& indices = *call.inputs[1];  // [N, K]
  const Tensor& gate_up = *call.inputs[3];
  const Tensor& down = *call.inputs[4];
  // How many experts share a row of x is for the router to say; counting each once needs memory, so this is the most.
  const int64_t experts = gate_up.size(0);
  const int64_t chosen = std::min(indices.num_elements(), experts);
  const int64_t weights = tensor_bytes(gate_up) + tensor_bytes(down);
  const int64_t per_choice = gate_up.size(1) * gate_up.size(2) + down.size(1) * down.size(2);
  return {operand_bytes(call) - weights + weights / std::max<int64_t>(1, experts) * chosen,
          indices.num_elements() * per_choice};
}

Cost matmul_cost(const Call& call, const KernelContext&) {
  return {operand_bytes(call), call.outputs[0]->num_elements() * call.inputs[0]->size(-1)};
}

}  // namespace mote
