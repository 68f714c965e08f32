// mote.linear_attention: a recurrence over outer products of values and keys, whose state is a matrix for each head.
#include <algorithm>

#include "kernels/kernel.h"
#include "kernels/ops/linear_attention/linear_attention.h"
#include "kernels/support/contract.h"
#include "kernels/support/recurrent.h"
#include "kernels/support/rows.h"
#include "kernels/support/scratch.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct LinearAttentionParams {
  const LinearAttentionFunctions* functions;
  size_t state;
};

// Whether the kernel reads the rows [.., N] where they lie; else it gets a copy.
bool has_neighbours(const Tensor& tensor) { return tensor.rank != 4 || tensor.size(3) == 1 || tensor.stride(3) == 1; }

Status check_decay(const Tensor& decay, const Tensor& v, int64_t width) {
  MOTE_RETURN_IF_ERROR(expect_dtype(decay, "decay", {DType::kFloat32}));
  if (decay.rank == 3) return expect_sizes(decay, "decay", {1, v.size(1), v.size(2)});
  return expect_sizes(decay, "decay", {1, v.size(1), v.size(2), width});
}

Status check_linear_attention(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 3, 5, 1));
  const Tensor &q = *call.inputs[0], &k = *call.inputs[1], &v = *call.inputs[2];
  MOTE_RETURN_IF_ERROR(expect_dtype(v, "v", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(v, "v", 4, 4));
  MOTE_REQUIRE(v.size(0) == 1, Code::kInvalidProgram, "v has batch size %lld: must be 1",
               static_cast<long long>(v.size(0)));
  MOTE_RETURN_IF_ERROR(expect_rank(k, "k", 4, 4));
  const int64_t heads = k.size(2), width = k.size(3);
  MOTE_REQUIRE(heads >= 1 && v.size(2) % heads == 0, Code::kInvalidProgram,
               "k has %lld heads: must divide the %lld of v", static_cast<long long>(heads),
               static_cast<long long>(v.size(2)));
  MOTE_REQUIRE(width >= 1 && v.size(3) >= 1, Code::kInvalidProgram, "k, v: have heads without elements");
  for (const auto& [tensor, name] : {std::pair(&q, "q"), std::pair(&k, "k")}) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*tensor, name, {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*tensor, name, {1, v.size(1), heads, width}));
  }
  if (const Tensor* decay = optional_input(call, 3)) MOTE_RETURN_IF_ERROR(check_decay(*decay, v, width));
  if (const Tensor* beta = optional_input(call, 4)) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*beta, "beta", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*beta, "beta", {1, v.size(1), v.size(2)}));
  }
  LinearAttentionParams& params = call.make_params<LinearAttentionParams>();
  const int64_t state_sizes[] = {1, v.size(2), v.size(3), width};
  MOTE_ASSIGN(params.state, expect_recurrent_state(call, state_sizes));
  MOTE_ASSIGN(params.functions, select_functions<LinearAttentionFunctions>({}, std::max<int64_t>(1, v.size(1))));
  return expect_output(call, 0, DType::kFloat32, Sizes::of(v).span());
}

constexpr size_t kRowInputs[] = {0, 1, 3};  // q, k, decay

size_t linear_attention_scratch_bytes(const Call& call, int) {
  size_t bytes = 0;
  for (const size_t input : kRowInputs) {
    const Tensor* tensor = optional_input(call, input);
    if (tensor != nullptr && !has_neighbours(*tensor)) bytes += array_bytes<float>(tensor->num_elements());
  }
  return bytes;
}

// An input as the kernel reads it.
struct Operand {
  const float* data = nullptr;               // nullptr: absent
  int64_t token = 0, head = 0, element = 0;  // strides

  TokenSeries series(int64_t first, int64_t of_head, int64_t of_element) const {
    if (data == nullptr) return {};
    return {data + first * token + of_head * head + of_element * element, token};
  }
};

Operand operand_of(const Tensor* tensor, bool in_rows, Scratch& scratch, KernelContext& context) {
  if (tensor == nullptr) return {};
  if (!in_rows || has_neighbours(*tensor)) {
    return {tensor->as<float>(), tensor->stride(1), tensor->stride(2), tensor->rank == 4 ? tensor->stride(3) : 0};
  }
  const int64_t heads = tensor->size(2), width = tensor->size(3);
  float* copy = scratch.take<float>(tensor->num_elements());
  context.threads->parallel_for(num_rows(*tensor), row_grain(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) copy_row(*tensor, row, copy + row * width);
  });
  return {copy, heads * width, width, 1};
}

// The tokens of one sequence in a call.
struct Sequence {
  const Call& call;
  const Operand &q, &k, &v, &decay, &beta;
  int64_t first;  // of its tokens in the call
  int64_t tokens;
  float* state;

  // Rows [begin, end) of those that share the queries and keys of `key_head`.
  void run(const LinearAttentionFunctions& functions, int64_t key_head, int64_t begin, int64_t end) const {
    const Tensor& values = *call.inputs[2];
    const int64_t width = call.inputs[1]->size(3), per_head = values.size(3), heads = values.size(2);
    const int64_t first_head = key_head * (heads / call.inputs[1]->size(2));
    const LinearAttentionTokens all{q.series(first, key_head, 0),
                                    k.series(first, key_head, 0),
                                    tokens,
                                    width,
                                    heads * per_head,
                                    decay.data != nullptr && call.inputs[3]->rank == 4};
    for (int64_t at = begin; at < end; at += kLinearAttentionRows) {
      const int count = static_cast<int>(std::min<int64_t>(kLinearAttentionRows, end - at));
      LinearAttentionRow rows[kLinearAttentionRows];
      for (int r = 0; r < count; ++r) {
        const int64_t head = first_head + (at + r) / per_head, element = (at + r) % per_head;
        const int64_t index = head * per_head + element;
        rows[r] = {state + index * width, v.series(first, head, element), decay.series(first, head, 0),
                   beta.series(first, head, 0), call.outputs[0]->as<float>() + first * heads * per_head + index};
      }
      functions.run(all, rows, count);
    }
  }
};

// Threads split the rows of the state.
Status run_linear_attention(const Call& call, KernelContext& context) {
  const LinearAttentionParams& params = call.get_params<LinearAttentionParams>();
  Scratch scratch(context.scratch);
  Operand operands[5];
  for (size_t i = 0; i < std::size(operands); ++i) {
    const bool in_rows = std::ranges::find(kRowInputs, i) != std::end(kRowInputs);
    operands[i] = operand_of(optional_input(call, i), in_rows, scratch, context);
  }
  const int64_t key_heads = call.inputs[1]->size(2), width = call.inputs[1]->size(3);
  const int64_t rows = call.inputs[2]->size(2) / key_heads * call.inputs[2]->size(3);  // of a head of keys
  const int64_t blocks = (rows + kLinearAttentionRows - 1) / kLinearAttentionRows;
  int64_t first = 0;
  for (const SequenceStates& states : context.sequences) {
    MOTE_ASSIGN(float* state, recurrent_data(call, states, params.state));
    const Sequence sequence{call,        operands[0], operands[1],   operands[2], operands[3],
                            operands[4], first,       states.tokens, state};
    const int64_t grain = row_grain(states.tokens * width * kLinearAttentionRows);
    context.threads->parallel_for(key_heads * blocks, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t at = block % blocks * kLinearAttentionRows;
        sequence.run(*params.functions, block / blocks, at, std::min(at + kLinearAttentionRows, rows));
      }
    });
    first += states.tokens;
  }
  return Status();
}

OutputAxis linear_attention_axis(const SymbolicCall& call) { return tokens_at(call, {1, 1, 1, 1, 1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.linear_attention", .check = check_linear_attention,
                 .scratch_bytes = linear_attention_scratch_bytes, .run = run_linear_attention,
                 .token_axis = linear_attention_axis);

}  // namespace mote
