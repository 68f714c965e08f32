// mote.rms_norm and mote.layer_norm: each row on its own.
#include "kernels/kernel.h"
#include "kernels/ops/norm/norm.h"
#include "kernels/support/contract.h"
#include "kernels/support/rows.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct NormParams {
  const NormFunctions* functions;
  float eps;
  float offset;  // added to the weight
};

// Rows that are worth handing to a thread: about 10 us of work.
int64_t grain(int64_t width) { return std::max<int64_t>(1, 131072 / std::max<int64_t>(width, 1)); }

Status check_norm(Call& call, size_t most_inputs) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, most_inputs, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 1, kMaxRank));
  for (size_t i = 1; i < most_inputs; ++i) {
    const Tensor* parameter = optional_input(call, i);
    if (parameter == nullptr) continue;
    MOTE_RETURN_IF_ERROR(expect_parameter(*parameter, i == 1 ? "weight" : "bias", {x.size(-1)}));
  }
  NormParams& params = call.make_params<NormParams>();
  MOTE_ASSIGN(const double eps, call.number("eps"));
  params.eps = static_cast<float>(eps);
  MOTE_ASSIGN(params.functions, select_functions<NormFunctions>({}, std::max<int64_t>(1, num_rows(x))));
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

const float* data_or_null(const Tensor* tensor) { return tensor == nullptr ? nullptr : tensor->as<float>(); }

Status check_rms_norm(Call& call) {
  MOTE_RETURN_IF_ERROR(check_norm(call, 2));
  MOTE_ASSIGN(const int64_t unit_offset, integer_or(call, "unit_offset", 0, 0, 1));
  NormParams params = call.get_params<NormParams>();
  params.offset = static_cast<float>(unit_offset);
  call.make_params<NormParams>() = params;
  return Status();
}

Status run_rms_norm(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const NormParams params = call.get_params<NormParams>();
  const float* weight = data_or_null(optional_input(call, 1));
  const int64_t width = x.size(-1);
  float* out = call.outputs[0]->as<float>();
  context.threads->parallel_for(num_rows(x), grain(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* y = out + row * width;
      params.functions->rms_norm(read_row(x, row, y), weight, params.offset, params.eps, width, y);
    }
  });
  return Status();
}

Status check_layer_norm(Call& call) { return check_norm(call, 3); }

Status run_layer_norm(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const NormParams params = call.get_params<NormParams>();
  const float* weight = data_or_null(optional_input(call, 1));
  const float* bias = data_or_null(optional_input(call, 2));
  const int64_t width = x.size(-1);
  float* out = call.outputs[0]->as<float>();
  context.threads->parallel_for(num_rows(x), grain(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* y = out + row * width;
      params.functions->layer_norm(read_row(x, row, y), weight, bias, params.eps, width, y);
    }
  });
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.rms_norm", .check = check_rms_norm, .run = run_rms_norm, .token_axis = row_axis);
MOTE_REGISTER_OP(.name = "mote.layer_norm", .check = check_layer_norm, .run = run_layer_norm, .token_axis = row_axis);

}  // namespace mote
