// mote.soft_clip: values are bent towards a limit of their column.
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"
#include "kernels/support/math.h"
#include "kernels/support/rows.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct SoftClipParams {
  float scale;
};

Status check_soft_clip(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 2, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 1, kMaxRank));
  MOTE_RETURN_IF_ERROR(expect_parameter(*call.inputs[1], "limit", {x.size(-1)}));
  MOTE_ASSIGN(const double scale, call.number("scale"));
  call.make_params<SoftClipParams>().scale = static_cast<float>(scale);
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

Status run_soft_clip(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const float* limit = call.inputs[1]->as<float>();
  const float scale = call.get_params<SoftClipParams>().scale;
  const int64_t width = x.size(-1);
  float* out = call.outputs[0]->as<float>();
  context.threads->parallel_for(num_rows(x), row_grain(32 * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* y = out + row * width;
      const float* from = read_row(x, row, y);
      for (int64_t i = 0; i < width; ++i) y[i] = limit[i] * math::tanh(scale * from[i] / limit[i]);
    }
  });
  return Status();
}

Cost soft_clip_cost(const Call& call, const KernelContext&) {
  return {operand_bytes(call), 2 * call.inputs[0]->num_elements()};
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.soft_clip", .check = check_soft_clip, .run = run_soft_clip, .token_axis = row_axis,
                 .cost = soft_clip_cost);

}  // namespace mote
