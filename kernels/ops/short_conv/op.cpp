// mote.short_conv: causal depthwise convolution whose state is the last rows of its input.
#include "kernels/kernel.h"
#include "kernels/ops/short_conv/short_conv.h"
#include "kernels/support/contract.h"
#include "kernels/support/recurrent.h"
#include "kernels/support/rows.h"
#include "kernels/support/scratch.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct ShortConvParams {
  const ShortConvFunctions* functions;
  size_t state;
};

Status check_short_conv(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 3, 1));
  const Tensor& x = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 3, 3));
  MOTE_REQUIRE(x.size(0) == 1, Code::kInvalidProgram, "x has batch size %lld: must be 1",
               static_cast<long long>(x.size(0)));
  MOTE_RETURN_IF_ERROR(expect_rank(weight, "weight", 2, 2));
  MOTE_REQUIRE(weight.size(1) >= 1 && weight.size(1) <= ShortConvFunctions::kMaxTaps, Code::kInvalidProgram,
               "weight has %lld columns: must be 1 to %lld", static_cast<long long>(weight.size(1)),
               static_cast<long long>(ShortConvFunctions::kMaxTaps));
  MOTE_RETURN_IF_ERROR(expect_parameter(weight, "weight", {x.size(2), weight.size(1)}));
  if (const Tensor* bias = optional_input(call, 2)) MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "bias", {x.size(2)}));
  const int64_t state_sizes[] = {1, weight.size(1) - 1, x.size(2)};
  ShortConvParams& params = call.make_params<ShortConvParams>();
  MOTE_ASSIGN(params.state, expect_recurrent_state(call, state_sizes));
  MOTE_ASSIGN(params.functions, select_functions<ShortConvFunctions>({}, std::max<int64_t>(1, x.size(1))));
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

// Whether the kernel reads x where it lies; else it gets a copy.
bool has_neighbouring_channels(const Tensor& x) { return x.stride(2) == 1 || x.size(2) == 1; }

size_t short_conv_scratch_bytes(const Call& call, int) {
  const Tensor& x = *call.inputs[0];
  return has_neighbouring_channels(x) ? 0 : array_bytes<float>(x.num_elements());
}

// Threads split the channels, so that each reads and writes columns of the state of its own.
Status run_short_conv(const Call& call, KernelContext& context) {
  const ShortConvParams& params = call.get_params<ShortConvParams>();
  const Tensor &x = *call.inputs[0], &weight = *call.inputs[1];
  const Tensor* bias = optional_input(call, 2);
  const int64_t channels = x.size(2), taps = weight.size(1);
  const float* from = x.as<float>();
  int64_t step = x.stride(1);
  if (!has_neighbouring_channels(x)) {
    float* copy = Scratch(context.scratch).take<float>(x.num_elements());
    context.threads->parallel_for(x.size(1), row_grain(channels), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) copy_row(x, row, copy + row * channels);
    });
    from = copy;
    step = channels;
  }
  constexpr int64_t kTogether = ShortConvFunctions::kChannels;
  int64_t first = 0;
  for (const SequenceStates& sequence : context.sequences) {
    MOTE_ASSIGN(float* state, recurrent_data(call, sequence, params.state));
    const int64_t tokens = sequence.tokens, blocks = (channels + kTogether - 1) / kTogether;
    context.threads->parallel_for(blocks, row_grain(tokens * taps * 2), [&](int64_t begin, int64_t end, int) {
      for (int64_t c = begin * kTogether; c < std::min(end * kTogether, channels); c += kTogether) {
        params.functions->run({from + first * step + c, step, weight.as<float>() + c * taps,
                               bias == nullptr ? nullptr : bias->as<float>() + c, state + c,
                               call.outputs[0]->as<float>() + first * channels + c, channels, taps, tokens,
                               std::min(kTogether, channels - c)});
      }
    });
    first += tokens;
  }
  return Status();
}

OutputAxis short_conv_axis(const SymbolicCall& call) { return tokens_at(call, {1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.short_conv", .check = check_short_conv, .scratch_bytes = short_conv_scratch_bytes,
                 .run = run_short_conv, .token_axis = short_conv_axis);

}  // namespace mote
