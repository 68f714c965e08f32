// mote.linear and mote.gated_linear: products with the rows of a weight, after a normalisation if the op says so.
#include <algorithm>

#include "kernels/ops/linear/strips.h"
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"
#include "kernels/support/rows.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

Status check_norm(Call& call, size_t norm_input, LinearParams& params) {
  const Tensor& x = *call.inputs[kX];
  MOTE_ASSIGN(const int norm, choice(call, "norm", {"none", "rms"}));
  const Tensor* weight = optional_input(call, norm_input);
  MOTE_REQUIRE(norm == 1 || weight == nullptr, Code::kInvalidProgram,
               "norm_weight is given: attribute 'norm' must be rms");
  params.norm_input = norm_input;
  if (norm == 0) return Status();
  params.norm.present = true;
  MOTE_ASSIGN(const double eps, call.number("norm_eps"));
  MOTE_ASSIGN(const int64_t unit_offset, integer_or(call, "norm_unit_offset", 0, 0, 1));
  params.norm.eps = static_cast<float>(eps);
  params.norm.offset = static_cast<float>(unit_offset);
  if (weight != nullptr) MOTE_RETURN_IF_ERROR(expect_parameter(*weight, "norm_weight", {x.size(-1)}));
  return Status();
}

Status check_common(Call& call, size_t norm_input) {
  const Tensor& x = *call.inputs[kX];
  const Tensor& weight = *call.inputs[kWeight];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 1, kMaxRank));
  MOTE_RETURN_IF_ERROR(expect_weight(weight, "weight", 2));
  MOTE_REQUIRE(x.size(-1) == weight.size(1), Code::kInvalidProgram, "x has %lld columns: must be %lld, as the weight",
               static_cast<long long>(x.size(-1)), static_cast<long long>(weight.size(1)));
  MOTE_REQUIRE(weight.size(1) >= 1, Code::kInvalidProgram, "weight has no columns: must have at least one");
  if (const Tensor* bias = optional_input(call, kBias)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "bias", {weight.size(0)}));
  }
  MOTE_ASSIGN(const int rounding, choice(call, "activations", kInputNames));
  LinearParams params{};
  MOTE_ASSIGN(params.product, select_product(static_cast<InputRounding>(rounding), weight,
                                             std::max<int64_t>(1, num_rows(x)), call.packed_weights));
  MOTE_RETURN_IF_ERROR(check_norm(call, norm_input, params));
  call.make_params<LinearParams>() = params;
  return Status();
}

Status check_linear(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 5, 1));
  MOTE_RETURN_IF_ERROR(check_common(call, 4));
  Sizes sizes = Sizes::of(*call.inputs[kX]);
  sizes[-1] = call.inputs[kWeight]->size(0);
  if (const Tensor* residual = optional_input(call, kResidual)) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*residual, "residual", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*residual, "residual", sizes.span()));
  }
  return expect_output(call, 0, DType::kFloat32, sizes.span());
}

Status check_gated_linear(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 4, 1));
  MOTE_RETURN_IF_ERROR(check_common(call, 3));
  MOTE_ASSIGN(const int function, choice(call, "function", kGateNames));
  LinearParams params = call.get_params<LinearParams>();
  params.function = static_cast<GateFunction>(function);
  call.make_params<LinearParams>() = params;
  const int64_t rows = call.inputs[kWeight]->size(0);
  MOTE_REQUIRE(rows % 2 == 0, Code::kInvalidProgram, "weight has %lld rows: must be even, gate then up",
               static_cast<long long>(rows));
  Sizes sizes = Sizes::of(*call.inputs[kX]);
  sizes[-1] = rows / 2;
  return expect_output(call, 0, DType::kFloat32, sizes.span());
}

Cost linear_cost(const Call& call, const KernelContext&) {
  return {operand_bytes(call), call.inputs[kX]->num_elements() * call.inputs[kWeight]->size(0)};
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.linear", .check = check_linear, .scratch_bytes = linear_scratch_bytes, .run = run_linear,
                 .token_axis = row_axis, .cost = linear_cost, .finds_maxima = true);
MOTE_REGISTER_OP(.name = "mote.gated_linear", .check = check_gated_linear, .scratch_bytes = linear_scratch_bytes,
                 .run = run_gated_linear, .token_axis = row_axis, .cost = linear_cost);

}  // namespace mote
