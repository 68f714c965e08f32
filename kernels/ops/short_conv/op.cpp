// mote.short_conv: causal depthwise convolution whose state is the last rows of its input.
#include <cstring>

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
  const size_t state = array_bytes<float>((call.inputs[1]->size(1) - 1) * x.size(2));
  return state + (has_neighbouring_channels(x) ? 0 : array_bytes<float>(x.num_elements()));
}

// The tokens of one sequence in a call.
struct ShortConvSequence {
  const RecurrentState& state;
  RecurrentCall plan;
  const float* x = nullptr;  // of its first token
  int64_t step = 0;          // from one token's x to the next's
  int64_t tokens, channels, taps;

  int64_t history() const { return taps - 1; }
  float* row(float* states, int64_t index) const { return states + index * channels; }
  void copy(float* to, const float* from, int64_t first, int64_t count) const {
    std::memmove(to + first, from + first, static_cast<size_t>(count) * sizeof(float));
  }

  // Brings `count` channels of the state to where the call begins.
  void load(int64_t first, int64_t count) const {
    float* own = state.tensor.as<float>();
    if (plan.source != nullptr) {
      for (int64_t r = 0; r < history(); ++r)
        copy(row(own, r), plan.source + state.offset + r * channels, first, count);
    }
    if (plan.num_replayed == 0) return;
    // Ascending: a row is read before it is overwritten.
    for (int64_t r = 0; r < history(); ++r) {
      const int64_t at = plan.num_replayed + r;
      const float* from = at < history() ? row(own, at) : recorded(plan.first_replayed + at - history());
      copy(row(own, r), from, first, count);
    }
  }
  float* recorded(int64_t row) const { return state.rows + row % plan.num_rows * state.row_floats; }

  // The state after the first `count` tokens of the call, from the one that it began with.
  void write_state(int64_t after, const float* began, float* to, int64_t first, int64_t count) const {
    for (int64_t r = 0; r < history(); ++r) {
      const int64_t at = after + r;
      copy(to + r * channels, at < history() ? began + at * channels : x + (at - history()) * step, first, count);
    }
  }

  void record(int64_t first, int64_t count) const {
    const int64_t begin = tokens - plan.num_recorded;
    for (int64_t i = 0; i < plan.num_recorded; ++i)
      copy(recorded(plan.first_recorded + i), x + (begin + i) * step, first, count);
  }
};

// Calls body(sequence, first token) for each sequence of a call, whose x lies at `x`.
template <typename Body>
Status for_each_conv_sequence(const Call& call, const float* x, int64_t step, KernelContext& context,
                              const Body& body) {
  const ShortConvParams& params = call.get_params<ShortConvParams>();
  int64_t first = 0;
  for (const SequenceStates& states : context.sequences) {
    MOTE_RETURN_IF_ERROR(recurrent_data(call, states, params.state).status());
    RecurrentCall plan{.num_kept = states.tokens};
    if (states.recurrent != nullptr) plan = *states.recurrent;
    body(ShortConvSequence{states.recurrent_states[params.state], plan, x == nullptr ? nullptr : x + first * step, step,
                           states.tokens, call.inputs[0]->size(2), call.inputs[1]->size(1)},
         first);
    first += states.tokens;
  }
  return {};
}

// Few enough for all channels to pass by as streams, which caches fetch ahead.
constexpr int64_t kChunkTokens = 32;

// `began`: memory for the state, where the call does not keep all of its tokens.
void run_conv_channels(const Call& call, const ShortConvSequence& sequence, int64_t first_token, int64_t first,
                       int64_t count, float* began) {
  const ShortConvParams& params = call.get_params<ShortConvParams>();
  const float* weight = call.inputs[1]->as<float>();
  const Tensor* bias = optional_input(call, 2);
  float* own = sequence.state.tensor.as<float>();
  sequence.load(first, count);
  for (const RecurrentCopy& copy : sequence.plan.copies)
    sequence.write_state(copy.tokens, own, copy.to + sequence.state.offset, first, count);
  sequence.record(first, count);
  const bool keeps_all = sequence.plan.num_kept == sequence.tokens;
  for (int64_t r = 0; r < sequence.history() && !keeps_all; ++r)
    sequence.copy(sequence.row(began, r), sequence.row(own, r), first, count);
  constexpr int64_t kTogether = ShortConvFunctions::kChannels;
  for (int64_t token = 0; token < sequence.tokens; token += kChunkTokens) {
    const int64_t tokens = std::min(kChunkTokens, sequence.tokens - token);
    const float* x = sequence.x + token * sequence.step;
    float* y = call.outputs[0]->as<float>() + (first_token + token) * sequence.channels;
    for (int64_t c = first; c < first + count; c += kTogether) {
      params.functions->run({x + c, sequence.step, weight + c * sequence.taps,
                             bias == nullptr ? nullptr : bias->as<float>() + c, own + c, y + c, sequence.channels,
                             sequence.taps, tokens, std::min(kTogether, first + count - c)});
    }
  }
  if (!keeps_all) sequence.write_state(sequence.plan.num_kept, began, own, first, count);
}

// Threads split the channels, so that each reads and writes columns of the state of its own. work: of a channel
template <typename Body>
void for_channels(int64_t channels, int64_t work, KernelContext& context, const Body& body) {
  constexpr int64_t kTogether = ShortConvFunctions::kChannels;
  const int64_t blocks = (channels + kTogether - 1) / kTogether;
  context.threads->parallel_for(blocks, row_grain(kTogether * work), [&](int64_t begin, int64_t end, int) {
    body(begin * kTogether, std::min(end * kTogether, channels) - begin * kTogether);
  });
}

Status run_short_conv(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const int64_t channels = x.size(2), taps = call.inputs[1]->size(1);
  Scratch scratch(context.scratch);
  float* began = scratch.take<float>((taps - 1) * channels);
  const float* from = x.as<float>();
  int64_t step = x.stride(1);
  if (!has_neighbouring_channels(x)) {
    float* copy = scratch.take<float>(x.num_elements());
    context.threads->parallel_for(x.size(1), row_grain(channels), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) copy_row(x, row, copy + row * channels);
    });
    from = copy;
    step = channels;
  }
  return for_each_conv_sequence(call, from, step, context, [&](const ShortConvSequence& sequence, int64_t first_token) {
    for_channels(channels, sequence.tokens * taps * 2, context, [&](int64_t first, int64_t count) {
      run_conv_channels(call, sequence, first_token, first, count, began);
    });
  });
}

RecurrentRows short_conv_rows(const Call& call) {
  return {call.get_params<ShortConvParams>().state, call.inputs[0]->size(2)};
}

Status replay_short_conv(const Call& call, KernelContext& context) {
  return for_each_conv_sequence(call, nullptr, 0, context, [&](const ShortConvSequence& sequence, int64_t) {
    for_channels(sequence.channels, sequence.taps, context,
                 [&](int64_t first, int64_t count) { sequence.load(first, count); });
  });
}

OutputAxis short_conv_axis(const SymbolicCall& call) { return tokens_at(call, {1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.short_conv", .check = check_short_conv, .scratch_bytes = short_conv_scratch_bytes,
                 .run = run_short_conv, .token_axis = short_conv_axis, .recurrent_rows = short_conv_rows,
                 .replay = replay_short_conv);

}  // namespace mote
