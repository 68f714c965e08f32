// mote.moe_experts: the sum over the experts that a router chose.
#include <limits>

#include "kernels/ops/moe/experts.h"
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;
Status read_attributes(const Call& call, MoeParams& params) {
  MOTE_ASSIGN(const int activations, choice(call, "activations", kInputNames));
  const auto rounding = static_cast<InputRounding>(activations);
  const int64_t choices = call.inputs[kIndices]->num_elements();
  MOTE_ASSIGN(params.gate_up, select_expert_products(rounding, *call.inputs[kGateUp], choices, call.packed_weights));
  MOTE_ASSIGN(params.down, select_expert_products(rounding, *call.inputs[kDown], choices, call.packed_weights));
  MOTE_ASSIGN(const int function, choice(call, "function", kGateNames));
  params.function = static_cast<GateFunction>(function);
  MOTE_ASSIGN(const int layout, choice(call, "layout", {"concatenated", "interleaved", "single"}));
  params.layout = static_cast<GateLayout>(layout);
  MOTE_ASSIGN(const double limit, number_or(call, "limit", 0.0));
  MOTE_ASSIGN(const double alpha, number_or(call, "alpha", 0.0));
  MOTE_REQUIRE(limit >= 0, kBad, "attribute 'limit' = %g: must be at least 0", limit);
  MOTE_ASSIGN(const double gate_softcap, number_or(call, "gate_softcap", 0.0));
  MOTE_ASSIGN(const double up_softcap, number_or(call, "up_softcap", 0.0));
  MOTE_REQUIRE(gate_softcap >= 0 && up_softcap >= 0, kBad,
               "attributes 'gate_softcap' = %g, 'up_softcap' = %g: must be at least 0", gate_softcap, up_softcap);
  params.gate_softcap = static_cast<float>(gate_softcap);
  params.up_softcap = static_cast<float>(up_softcap);
  params.limit = static_cast<float>(limit);
  params.alpha = static_cast<float>(alpha);
  return Status();
}

Status check_experts(const Call& call, GateLayout layout) {
  const Tensor& gate_up = *call.inputs[kGateUp];
  const Tensor& down = *call.inputs[kDown];
  const int64_t width = call.inputs[kX]->size(1), experts = gate_up.size(0), rows = gate_up.size(1);
  const int64_t halves = layout == GateLayout::kSingle ? 1 : 2;
  MOTE_REQUIRE(rows % halves == 0, kBad, "gate_up has %lld rows: must be even, gate and up",
               static_cast<long long>(rows));
  MOTE_REQUIRE(experts < std::numeric_limits<int32_t>::max(), kBad, "gate_up has %lld experts: must be below 2^31",
               static_cast<long long>(experts));
  MOTE_RETURN_IF_ERROR(expect_sizes(gate_up, "gate_up", {experts, rows, width}));
  MOTE_RETURN_IF_ERROR(expect_sizes(down, "down", {experts, width, rows / halves}));
  if (const Tensor* bias = optional_input(call, kGateUpBias)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "gate_up_bias", {experts, rows}));
  }
  if (const Tensor* bias = optional_input(call, kDownBias)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "down_bias", {experts, width}));
  }
  return Status();
}

Status check_moe(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 5, 7, 1));
  const Tensor& x = *call.inputs[kX];
  const Tensor& indices = *call.inputs[kIndices];
  const Tensor& weights = *call.inputs[kWeights];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 2, 2));
  MOTE_RETURN_IF_ERROR(expect_dtype(indices, "indices", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(indices, "indices", 2, 2));
  MOTE_RETURN_IF_ERROR(expect_sizes(indices, "indices", {x.size(0), indices.size(1)}));
  MOTE_RETURN_IF_ERROR(expect_dtype(weights, "weights", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_sizes(weights, "weights", {x.size(0), indices.size(1)}));
  MOTE_REQUIRE(indices.num_elements() < std::numeric_limits<int32_t>::max(), kBad,
               "indices has %lld elements: must be below 2^31", static_cast<long long>(indices.num_elements()));
  MOTE_RETURN_IF_ERROR(expect_weight(*call.inputs[kGateUp], "gate_up", 3));
  MOTE_RETURN_IF_ERROR(expect_weight(*call.inputs[kDown], "down", 3));
  MoeParams params;
  MOTE_RETURN_IF_ERROR(read_attributes(call, params));
  MOTE_RETURN_IF_ERROR(check_experts(call, params.layout));
  call.make_params<MoeParams>() = params;
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

OutputAxis moe_axis(const SymbolicCall& call) {
  const TokenAxis x = call.axis(0);
  return x.dim == 0 && call.axis(1) == x && call.axis(2) == x ? OutputAxis(x) : kMixesTokens;
}

// Counts the weights of as many experts as there are choices, at most all: an upper bound, since tokens may share
// experts, and counting each once would need memory.
Cost moe_cost(const Call& call, const KernelContext&) {
  const Tensor& indices = *call.inputs[kIndices];  // [N, K]
  const Tensor& gate_up = *call.inputs[kGateUp];
  const Tensor& down = *call.inputs[kDown];
  const int64_t experts = gate_up.size(0);
  const int64_t chosen = std::min(indices.num_elements(), experts);
  const int64_t weights = tensor_bytes(gate_up) + tensor_bytes(down);
  const int64_t per_choice = gate_up.size(1) * gate_up.size(2) + down.size(1) * down.size(2);
  return {operand_bytes(call) - weights + weights / std::max<int64_t>(1, experts) * chosen,
          indices.num_elements() * per_choice};
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.moe_experts", .check = check_moe, .scratch_bytes = moe_scratch_bytes, .run = run_moe,
                 .token_axis = moe_axis, .cost = moe_cost);

}  // namespace mote
