// mote.expert_linear: the products of a token with the matrices of the experts that a router chose.
#include <limits>

#include "kernels/ops/moe/parts.h"
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

// Inputs: x [N, D], indices [N, K], weight [E, M, D]; output [N, K, M].
struct ExpertLinearParams {
  ExpertProducts products;
};

size_t expert_linear_thread_bytes(const Call& call) {
  const auto& params = call.get_params<ExpertLinearParams>();
  return expert_thread_bytes(params.products.scratch_bytes(matrix_of(*call.inputs[2], 0)));
}

size_t expert_linear_scratch_bytes(const Call& call, int num_threads) {
  const Tensor& weight = *call.inputs[2];
  const int64_t choices = call.inputs[1]->num_elements(), experts = weight.size(0);
  if (choices == 0) return 0;
  return routing_bytes(choices, experts) + array_bytes<int32_t>(choices) +
         activations_bytes(call.get_params<ExpertLinearParams>().products.many.x, matrix_of(weight, 0), choices,
                           most_blocks(choices, experts), num_threads) +
         static_cast<size_t>(num_threads) * expert_linear_thread_bytes(call);
}

// Columns [kExpertWide strip, ...) of y for some choices of an expert. rows: of y, by sorted choice
void multiply_expert(const Call& call, const Activations& x, const ExpertPart& part, int64_t strip, const int32_t* rows,
                     const ExpertBuffers& buffers) {
  const Product& product = call.get_params<ExpertLinearParams>().products.of(part.count);
  const Tensor& weight = *call.inputs[2];
  const int64_t outputs = weight.size(1), n = strip * kExpertWide, width = std::min(kExpertWide, outputs - n);
  Streams streams;
  for (int64_t row = n; row < n + width; row += kTileRows) streams.add(row);
  float* results = buffers.results(part.thread);
  multiply_streams(product, matrix_of(weight, part.expert), streams, x, part.first_block, part.num_blocks, results,
                   kExpertWide, buffers.scratch(part.thread));
  for (int64_t i = 0; i < part.count; ++i) {
    product.x.rows->finish(results + i * kExpertWide, nullptr, nullptr, width,
                           call.outputs[0]->as<float>() + rows[part.first + i] * outputs + n);
  }
}

Status run_expert_linear(const Call& call, KernelContext& context) {
  const Tensor& weight = *call.inputs[2];
  const int64_t choices = call.inputs[1]->num_elements();
  if (choices == 0) return Status();
  Scratch scratch(context.scratch);
  Routing routing;
  MOTE_RETURN_IF_ERROR(route(*call.inputs[1], weight.size(0), scratch, routing));
  if (context.reads_ahead) read_ahead(weight, routing);
  auto* rows = scratch.take<int32_t>(choices);
  for (int64_t i = 0; i < choices; ++i) rows[routing.places[i]] = static_cast<int32_t>(i);
  const RowOrder order = routing.token_rows();
  const Activations x = prepare_activations(call.get_params<ExpertLinearParams>().products.many.x, *call.inputs[0],
                                            FusedNorm(), matrix_of(weight, 0), &order, scratch, *context.threads);
  ExpertBuffers buffers;
  buffers.stride = static_cast<int64_t>(expert_linear_thread_bytes(call));
  buffers.bytes = scratch.take<std::byte>(buffers.stride * context.threads->num_threads());
  for_each_expert_strip(
      routing, weight.size(1), kExpertWide, weight.size(2) * kMaxStreams, *context.threads,
      [&](const ExpertPart& part, int64_t strip) { multiply_expert(call, x, part, strip, rows, buffers); });
  return Status();
}

Status check_expert_linear(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 3, 3, 1));
  const Tensor& x = *call.inputs[0];
  const Tensor& indices = *call.inputs[1];
  const Tensor& weight = *call.inputs[2];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 2, 2));
  MOTE_RETURN_IF_ERROR(expect_dtype(indices, "indices", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(indices, "indices", 2, 2));
  MOTE_RETURN_IF_ERROR(expect_sizes(indices, "indices", {x.size(0), indices.size(1)}));
  MOTE_REQUIRE(indices.num_elements() < std::numeric_limits<int32_t>::max(), Code::kInvalidProgram,
               "indices has %lld elements: must be below 2^31", static_cast<long long>(indices.num_elements()));
  MOTE_RETURN_IF_ERROR(expect_weight(weight, "weight", 3));
  MOTE_REQUIRE(weight.size(0) >= 1 && weight.size(0) < std::numeric_limits<int32_t>::max(), Code::kInvalidProgram,
               "weight has %lld experts: must be 1..2^31-2", static_cast<long long>(weight.size(0)));
  MOTE_RETURN_IF_ERROR(expect_sizes(weight, "weight", {weight.size(0), weight.size(1), x.size(1)}));
  MOTE_ASSIGN(const int rounding, choice(call, "activations", kInputNames));
  ExpertLinearParams params;
  MOTE_ASSIGN(params.products, select_expert_products(static_cast<InputRounding>(rounding), weight,
                                                      indices.num_elements(), call.packed_weights));
  call.make_params<ExpertLinearParams>() = params;
  const int64_t sizes[] = {x.size(0), indices.size(1), weight.size(1)};
  return expect_output(call, 0, DType::kFloat32, sizes);
}

OutputAxis expert_linear_axis(const SymbolicCall& call) {
  const TokenAxis x = call.axis(0);
  return x.dim == 0 && call.axis(1) == x ? OutputAxis(x) : kMixesTokens;
}

// An upper bound, as that of mote.moe_experts.
Cost expert_linear_cost(const Call& call, const KernelContext&) {
  const Tensor& weight = *call.inputs[2];
  const int64_t choices = call.inputs[1]->num_elements(), experts = std::max<int64_t>(1, weight.size(0));
  const int64_t bytes = tensor_bytes(weight);
  return {operand_bytes(call) - bytes + bytes / experts * std::min(choices, experts),
          choices * weight.size(1) * weight.size(2)};
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.expert_linear", .check = check_expert_linear,
                 .scratch_bytes = expert_linear_scratch_bytes, .run = run_expert_linear,
                 .token_axis = expert_linear_axis, .cost = expert_linear_cost);

}  // namespace mote
