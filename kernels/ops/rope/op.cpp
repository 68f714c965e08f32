// mote.rope_table and mote.rope.
#include "kernels/kernel.h"
#include "kernels/ops/rope/rotate.h"
#include "kernels/support/contract.h"
#include "kernels/support/math.h"
#include "kernels/support/rows.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct TableParams {
  float scale;
  bool interleaved;
};

Status check_rope_table(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 2, 2));
  const Tensor& positions = *call.inputs[0];
  const Tensor& inv_freq = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dtype(positions, "positions", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(positions, "positions", 0, kMaxRank - 1));
  MOTE_RETURN_IF_ERROR(expect_dtype(inv_freq, "inv_freq", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(inv_freq, "inv_freq", 1, 1));
  TableParams& params = call.make_params<TableParams>();
  MOTE_ASSIGN(const double scale, number_or(call, "scale", 1.0));
  MOTE_ASSIGN(const int layout, choice(call, "layout", {"half", "interleaved"}));
  params = {static_cast<float>(scale), layout == 1};
  Sizes sizes = Sizes::of(positions);
  sizes.push(2 * inv_freq.size(0));
  MOTE_RETURN_IF_ERROR(expect_output(call, 0, DType::kFloat32, sizes.span()));
  return expect_output(call, 1, DType::kFloat32, sizes.span());
}

Status run_rope_table(const Call& call, KernelContext& context) {
  const Tensor& positions = *call.inputs[0];
  const Tensor& inv_freq = *call.inputs[1];
  const TableParams params = call.get_params<TableParams>();
  const int64_t half = inv_freq.size(0);
  const Sizes sizes = Sizes::of(positions);
  const Walk walk(positions, sizes.span());
  float* cos = call.outputs[0]->as<float>();
  float* sin = call.outputs[1]->as<float>();
  context.threads->parallel_for(positions.num_elements(), row_grain(32 * half), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t buffer = 0;
      const auto position = static_cast<float>(*walk.read(positions.as<int64_t>(), t, 1, &buffer));
      for (int64_t i = 0; i < half; ++i) {
        const math::SinCos turn = math::sin_cos(position * inv_freq.as<float>()[i * inv_freq.stride(0)]);
        const float c = static_cast<float>(turn.cos) * params.scale, s = static_cast<float>(turn.sin) * params.scale;
        const int64_t row = 2 * half * t;
        const int64_t a = row + (params.interleaved ? 2 * i : i), b = row + (params.interleaved ? 2 * i + 1 : half + i);
        cos[a] = cos[b] = c;
        sin[a] = sin[b] = s;
      }
    }
  });
  return Status();
}

OutputAxis rope_table_axis(const SymbolicCall& call) { return tokens_at(call, {1}); }

struct RopeParams {
  RopeLayout layout;
  const RopeKernel* kernel;
};

Status check_rope(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 3, 3, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 4, 4));
  MOTE_REQUIRE(x.size(0) == 1, Code::kInvalidProgram, "x has batch size %lld: must be 1",
               static_cast<long long>(x.size(0)));
  for (size_t i = 1; i < 3; ++i) {
    const char* name = i == 1 ? "cos" : "sin";
    const Tensor& table = *call.inputs[i];
    MOTE_RETURN_IF_ERROR(expect_dtype(table, name, {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_rank(table, name, 3, 3));
    MOTE_RETURN_IF_ERROR(expect_sizes(table, name, {1, x.size(2), call.inputs[1]->size(-1)}));
    MOTE_REQUIRE(table.stride(2) == 1 || table.size(2) <= 1, Code::kInvalidProgram,
                 "%s is strided in its last dimension: must be contiguous there", name);
  }
  const int64_t turned = call.inputs[1]->size(2);
  MOTE_REQUIRE(turned % 2 == 0 && turned <= x.size(3), Code::kInvalidProgram,
               "cos has %lld columns: must be even and at most %lld", static_cast<long long>(turned),
               static_cast<long long>(x.size(3)));
  MOTE_ASSIGN(const int layout, choice(call, "layout", {"half", "half_flipped", "interleaved"}));
  MOTE_ASSIGN(const RopeKernel* kernel, select_functions<RopeKernel>({}, x.size(2)));
  call.make_params<RopeParams>() = {static_cast<RopeLayout>(layout), kernel};
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

Status run_rope(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& cos = *call.inputs[1];
  const Tensor& sin = *call.inputs[2];
  const RopeParams params = call.get_params<RopeParams>();
  const int64_t tokens = x.size(2), width = x.size(3), turned = cos.size(2);
  float* out = call.outputs[0]->as<float>();
  context.threads->parallel_for(x.size(1) * tokens, row_grain(4 * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end && width > 0; ++row) {
      float* y = out + row * width;
      const float* from = read_row(x, row, y);
      const int64_t t = row % tokens;
      params.kernel->rotate(params.layout, from, cos.as<float>() + t * cos.stride(1),
                            sin.as<float>() + t * sin.stride(1), turned, y);
      if (from != y) std::copy(from + turned, from + width, y + turned);
    }
  });
  return Status();
}

OutputAxis rope_axis(const SymbolicCall& call) {
  return tokens_at(call, {2, 1, 1}).has_value() ? OutputAxis(call.axis(0)) : kMixesTokens;
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.rope_table", .check = check_rope_table, .run = run_rope_table,
                 .token_axis = rope_table_axis);
MOTE_REGISTER_OP(.name = "mote.rope", .check = check_rope, .run = run_rope, .token_axis = rope_axis);

}  // namespace mote
