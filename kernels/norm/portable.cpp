// mote.rms_norm and mote.layer_norm: each row on its own, sums in 16 lanes.
#include <cmath>

#include "kernels/contract.h"
#include "kernels/rows.h"
#include "kernels/simd.h"

namespace mote {

namespace {

struct NormParams {
  float eps;
  float offset;  // added to the weight
};

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
  context.threads->parallel_for(num_rows(x), row_grain(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* y = out + row * width;
      const float* from = read_row(x, row, y);
      const float factor = 1.0f / std::sqrt(dot(from, from, width) / static_cast<float>(width) + params.eps);
      if (weight == nullptr) {
        for (int64_t i = 0; i < width; ++i) y[i] = from[i] * factor;
      } else {
        for (int64_t i = 0; i < width; ++i) y[i] = from[i] * factor * (weight[i] + params.offset);
      }
    }
  });
  return Status();
}

Status check_layer_norm(Call& call) { return check_norm(call, 3); }

// y holds the row; it becomes the row less its mean, and the reciprocal standard deviation is returned.
float center(float* y, int64_t width, float eps) {
  Lanes lanes;
  const float ones[kLanes] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) lanes.multiply_add(y + i, ones);
  float tail[kLanes] = {};
  std::copy(y + i, y + width, tail);
  lanes.multiply_add(tail, ones);
  const float mean = lanes.sum() / static_cast<float>(width);
  for (i = 0; i < width; ++i) y[i] -= mean;
  return 1.0f / std::sqrt(dot(y, y, width) / static_cast<float>(width) + eps);
}

Status run_layer_norm(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const NormParams params = call.get_params<NormParams>();
  const float* weight = data_or_null(optional_input(call, 1));
  const float* bias = data_or_null(optional_input(call, 2));
  const int64_t width = x.size(-1);
  float* out = call.outputs[0]->as<float>();
  context.threads->parallel_for(num_rows(x), row_grain(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* y = out + row * width;
      copy_row(x, row, y);
      const float factor = center(y, width, params.eps);
      for (int64_t i = 0; i < width; ++i) y[i] *= factor;
      for (int64_t i = 0; weight != nullptr && i < width; ++i) y[i] *= weight[i];
      for (int64_t i = 0; bias != nullptr && i < width; ++i) y[i] += bias[i];
    }
  });
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.rms_norm", .check = check_rms_norm, .run = run_rms_norm);
MOTE_REGISTER_OP(.name = "mote.layer_norm", .check = check_layer_norm, .run = run_layer_norm);

}  // namespace mote
