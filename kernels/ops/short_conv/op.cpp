// mote.short_conv: causal depthwise convolution whose state is the last rows of its input.
#include "kernels/support/contract.h"
#include "kernels/support/recurrent.h"
#include "kernels/support/rows.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct ShortConvParams {
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
  MOTE_REQUIRE(weight.size(1) >= 1, Code::kInvalidProgram, "weight has no columns: must have at least 1");
  MOTE_RETURN_IF_ERROR(expect_parameter(weight, "weight", {x.size(2), weight.size(1)}));
  if (const Tensor* bias = optional_input(call, 2)) MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "bias", {x.size(2)}));
  const int64_t state_sizes[] = {1, weight.size(1) - 1, x.size(2)};
  MOTE_ASSIGN(call.make_params<ShortConvParams>().state, expect_recurrent_state(call, state_sizes));
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

// Rows of the state followed by rows of x.
struct History {
  const float* x;
  int64_t row_stride;
  int64_t channel_stride;
  float* state;
  int64_t kept;  // rows of the state
  int64_t channels;

  float at(int64_t row, int64_t channel) const {
    if (row < kept) return state[row * channels + channel];
    return x[(row - kept) * row_stride + channel * channel_stride];
  }
};

void convolve(const History& history, const float* weight, const float* bias, int64_t tokens, int64_t begin,
              int64_t end, float* y) {
  const int64_t taps = history.kept + 1;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t c = begin; c < end; ++c) {
      float sum = 0;
      for (int64_t j = 0; j < taps; ++j) sum += weight[c * taps + j] * history.at(t + j, c);
      y[t * history.channels + c] = bias == nullptr ? sum : sum + bias[c];
    }
  }
  // Ascending: a row is read before it is overwritten.
  for (int64_t row = 0; row < history.kept; ++row) {
    for (int64_t c = begin; c < end; ++c) history.state[row * history.channels + c] = history.at(tokens + row, c);
  }
}

// Threads split the channels, so that each reads and writes columns of the state of its own.
Status run_short_conv(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  const Tensor* bias = optional_input(call, 2);
  const int64_t channels = x.size(2), taps = weight.size(1);
  int64_t first = 0;
  for (const SequenceStates& sequence : context.sequences) {
    MOTE_ASSIGN(float* state, recurrent_data(call, sequence, call.get_params<ShortConvParams>().state));
    const History history{x.as<float>() + first * x.stride(1), x.stride(1), x.stride(2), state, taps - 1, channels};
    float* y = call.outputs[0]->as<float>() + first * channels;
    context.threads->parallel_for(channels, row_grain(sequence.tokens * taps), [&](int64_t begin, int64_t end, int) {
      convolve(history, weight.as<float>(), bias == nullptr ? nullptr : bias->as<float>(), sequence.tokens, begin, end,
               y);
    });
    first += sequence.tokens;
  }
  return Status();
}

OutputAxis short_conv_axis(const SymbolicCall& call) { return tokens_at(call, {1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.short_conv", .check = check_short_conv, .run = run_short_conv,
                 .token_axis = short_conv_axis);

}  // namespace mote
