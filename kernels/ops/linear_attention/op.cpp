// mote.linear_attention: a recurrence over outer products of values and keys, whose state is a matrix for each head.
#include <algorithm>
#include <cstring>

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

size_t linear_attention_scratch_bytes(const Call& call, int num_threads) {
  size_t bytes = array_bytes<float>(num_threads * kLinearAttentionRows * call.inputs[1]->size(3));
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

// The sizes of a call's state, [heads, per_head, width], and of the rows that are recorded of a token: its keys, what
// was added along them, its decays.
struct StateSizes {
  int64_t key_heads, heads, per_head, width;
  int64_t decays = 0;  // of a head
  bool has_vector_decay = false;

  explicit StateSizes(const Call& call)
      : key_heads(call.inputs[1]->size(2)),
        heads(call.inputs[2]->size(2)),
        per_head(call.inputs[2]->size(3)),
        width(call.inputs[1]->size(3)) {
    const Tensor* decay = optional_input(call, 3);
    has_vector_decay = decay != nullptr && decay->rank == 4;
    if (decay != nullptr) decays = has_vector_decay ? width : 1;
  }
  int64_t num_rows() const { return heads * per_head; }
  int64_t keys() const { return key_heads * width; }
  int64_t row_floats() const { return keys() + num_rows() + heads * decays; }
};

// Rows of the state that share queries and keys.
struct Block {
  int64_t key_head = 0;
  int64_t first = 0;  // of the rows of all heads
  int count = 0;      // at most kLinearAttentionRows
};

// The tokens of one sequence in a call.
struct Sequence {
  const Call& call;
  const LinearAttentionFunctions& functions;
  const Operand* operands;  // q, k, v, decay, beta
  StateSizes sizes;
  int64_t first;  // of its tokens in the call
  int64_t tokens;
  const RecurrentState& state;
  RecurrentCall plan;

  float* rows_of(float* states, const Block& block) const { return states + block.first * sizes.width; }
  size_t bytes_of(const Block& block) const { return static_cast<size_t>(block.count * sizes.width) * sizeof(float); }
  int64_t first_recorded() const { return tokens - plan.num_recorded; }
  int64_t ring_row(int64_t token) const { return (plan.first_recorded + token - first_recorded()) % plan.num_rows; }

  // Brings rows of the state to where the call begins.
  void load(const Block& block) const {
    float* memory = rows_of(state.tensor.as<float>(), block);
    if (plan.source != nullptr)
      std::memcpy(memory, plan.source + state.offset + block.first * sizes.width, bytes_of(block));
    int64_t row = plan.first_replayed;
    for (int64_t left = plan.num_replayed; left > 0;) {
      const int64_t count = std::min(left, plan.num_rows - row);
      replay(block, memory, row, count);
      left -= count;
      row = 0;
    }
  }

  void replay(const Block& block, float* memory, int64_t ring_row, int64_t count) const {
    const int64_t step = state.row_floats;
    const float* keys = state.rows + ring_row * step;
    const float* updates = keys + sizes.keys();
    const float* decays = updates + sizes.num_rows();
    const LinearAttentionTokens all{
        {}, {keys + block.key_head * sizes.width, step}, count, sizes.width, 0, 0, sizes.has_vector_decay};
    LinearAttentionRow rows[kLinearAttentionRows];
    for (int r = 0; r < block.count; ++r) {
      const int64_t index = block.first + r, head = index / sizes.per_head;
      rows[r] = {memory + r * sizes.width, {updates + index, step}, {}, {}, nullptr, nullptr};
      if (sizes.decays > 0) rows[r].decay = {decays + head * sizes.decays, step};
    }
    functions.run(all, rows, block.count);
  }

  // The next token behind `token` at which something is to be done with the state, or where the ring begins again.
  int64_t next_stop(int64_t token) const {
    int64_t stop = tokens;
    if (plan.num_kept > token) stop = std::min(stop, plan.num_kept);
    for (const RecurrentCopy& copy : plan.copies) {
      if (copy.tokens > token) stop = std::min(stop, copy.tokens);
    }
    if (plan.num_recorded == 0) return stop;
    if (first_recorded() > token) return std::min(stop, first_recorded());
    return std::min(stop, token + plan.num_rows - ring_row(token));
  }

  // `spare`: memory for the rows of a block.
  void run(const Block& block, float* spare) const {
    load(block);
    float* memory = rows_of(state.tensor.as<float>(), block);
    for (int64_t token = 0;;) {
      for (const RecurrentCopy& copy : plan.copies) {
        if (copy.tokens == token) std::memcpy(rows_of(copy.to + state.offset, block), memory, bytes_of(block));
      }
      if (token == tokens) return;
      if (token == plan.num_kept) {
        std::memcpy(spare, memory, bytes_of(block));
        memory = spare;
      }
      const int64_t stop = next_stop(token);
      run_tokens(block, memory, token, stop);
      token = stop;
    }
  }

  void run_tokens(const Block& block, float* memory, int64_t begin, int64_t end) const {
    const int64_t at = first + begin, y_step = sizes.num_rows();
    const Operand &q = operands[0], &k = operands[1], &v = operands[2], &decay = operands[3], &beta = operands[4];
    const LinearAttentionTokens all{q.series(at, block.key_head, 0),
                                    k.series(at, block.key_head, 0),
                                    end - begin,
                                    sizes.width,
                                    y_step,
                                    state.row_floats,
                                    sizes.has_vector_decay};
    const bool records = plan.num_recorded > 0 && begin >= first_recorded();
    float* updates = records ? state.rows + ring_row(begin) * state.row_floats + sizes.keys() : nullptr;
    LinearAttentionRow rows[kLinearAttentionRows];
    for (int r = 0; r < block.count; ++r) {
      const int64_t index = block.first + r, head = index / sizes.per_head, element = index % sizes.per_head;
      rows[r] = {memory + r * sizes.width,
                 v.series(at, head, element),
                 decay.series(at, head, 0),
                 beta.series(at, head, 0),
                 call.outputs[0]->as<float>() + at * y_step + index,
                 records ? updates + index : nullptr};
    }
    functions.run(all, rows, block.count);
  }

  // The keys and decays of a token into the ring.
  void record(int64_t token) const {
    float* to = state.rows + ring_row(token) * state.row_floats;
    const auto copy_head = [&](const Operand& from, int64_t head, int64_t count, float* part) {
      std::memcpy(part + head * count, from.series(first + token, head, 0).first,
                  static_cast<size_t>(count) * sizeof(float));
    };
    for (int64_t head = 0; head < sizes.key_heads; ++head) copy_head(operands[1], head, sizes.width, to);
    if (sizes.decays == 0) return;
    float* decays = to + sizes.keys() + sizes.num_rows();
    for (int64_t head = 0; head < sizes.heads; ++head) copy_head(operands[3], head, sizes.decays, decays);
  }
};

// Calls body(block, thread) for the rows of the state, which threads divide.
template <typename Body>
void for_each_block(const StateSizes& sizes, int64_t tokens, KernelContext& context, const Body& body) {
  const int64_t rows = sizes.num_rows() / sizes.key_heads;  // of a head of keys
  const int64_t blocks = (rows + kLinearAttentionRows - 1) / kLinearAttentionRows;
  const int64_t grain = row_grain(tokens * sizes.width * kLinearAttentionRows);
  context.threads->parallel_for(sizes.key_heads * blocks, grain, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % blocks * kLinearAttentionRows, key_head = i / blocks;
      body(Block{key_head, key_head * rows + at, static_cast<int>(std::min(kLinearAttentionRows + at, rows) - at)},
           thread);
    }
  });
}

// Calls body(sequence) for each sequence of a call.
template <typename Body>
Status for_each_sequence(const Call& call, const Operand* operands, KernelContext& context, const Body& body) {
  const LinearAttentionParams& params = call.get_params<LinearAttentionParams>();
  int64_t first = 0;
  for (const SequenceStates& states : context.sequences) {
    MOTE_RETURN_IF_ERROR(recurrent_data(call, states, params.state).status());
    const RecurrentState& state = states.recurrent_states[params.state];
    RecurrentCall plan{.num_kept = states.tokens};
    if (states.recurrent != nullptr) plan = *states.recurrent;
    body(Sequence{call, *params.functions, operands, StateSizes(call), first, states.tokens, state, plan});
    first += states.tokens;
  }
  return {};
}

Status run_linear_attention(const Call& call, KernelContext& context) {
  Scratch scratch(context.scratch);
  const int64_t spare_floats = kLinearAttentionRows * call.inputs[1]->size(3);
  float* spare = scratch.take<float>(context.threads->num_threads() * spare_floats);
  Operand operands[5];
  for (size_t i = 0; i < std::size(operands); ++i) {
    const bool in_rows = std::ranges::find(kRowInputs, i) != std::end(kRowInputs);
    operands[i] = operand_of(optional_input(call, i), in_rows, scratch, context);
  }
  return for_each_sequence(call, operands, context, [&](const Sequence& sequence) {
    for_each_block(sequence.sizes, sequence.tokens + sequence.plan.num_replayed, context,
                   [&](const Block& block, int thread) { sequence.run(block, spare + thread * spare_floats); });
    // Behind the rows that are replayed, which they may overwrite.
    const int64_t begin = sequence.first_recorded(), count = sequence.plan.num_recorded;
    context.threads->parallel_for(count, row_grain(sequence.sizes.row_floats()), [&](int64_t from, int64_t to, int) {
      for (int64_t i = from; i < to; ++i) sequence.record(begin + i);
    });
  });
}

RecurrentRows linear_attention_rows(const Call& call) {
  return {call.get_params<LinearAttentionParams>().state, StateSizes(call).row_floats()};
}

Status replay_linear_attention(const Call& call, KernelContext& context) {
  return for_each_sequence(call, nullptr, context, [&](const Sequence& sequence) {
    for_each_block(sequence.sizes, sequence.plan.num_replayed + 1, context,
                   [&](const Block& block, int) { sequence.load(block); });
  });
}

OutputAxis linear_attention_axis(const SymbolicCall& call) { return tokens_at(call, {1, 1, 1, 1, 1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.linear_attention", .check = check_linear_attention,
                 .scratch_bytes = linear_attention_scratch_bytes, .run = run_linear_attention,
                 .token_axis = linear_attention_axis, .recurrent_rows = linear_attention_rows,
                 .replay = replay_linear_attention);

}  // namespace mote
