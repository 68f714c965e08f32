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

void copy_floats(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

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
constexpr int64_t kPanelRows = 128;         // of the state, which a thread takes through a chunk of tokens
constexpr int64_t kChunkTokens = 32;
constexpr int64_t kFewTokens = 4;        // too few to be copied: operands are read where they lie
constexpr int64_t kCopiedDecays = 1024;  // of a token and a panel, at most

// A thread's floats. The operands of a chunk are copied next to each other, as tokens are far apart: at distances that
// fall into the same lines of a cache.
struct PanelMemory {
  float *state, *q, *k, *v, *y, *decays;

  static int64_t floats(int64_t width) {
    return (kPanelRows + 2 * kChunkTokens) * width + kChunkTokens * (2 * kPanelRows + kCopiedDecays);
  }
  PanelMemory(float* memory, int64_t width)
      : state(memory),
        q(state + kPanelRows * width),
        k(q + kChunkTokens * width),
        v(k + kChunkTokens * width),
        y(v + kChunkTokens * kPanelRows),
        decays(y + kChunkTokens * kPanelRows) {}
};

size_t linear_attention_scratch_bytes(const Call& call, int num_threads) {
  size_t bytes = array_bytes<float>(num_threads * PanelMemory::floats(call.inputs[1]->size(3)));
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

  Operand from(int64_t first) const {
    return data == nullptr ? Operand{} : Operand{data + first * token, token, head, element};
  }
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
struct Panel {
  int64_t key_head = 0;
  int64_t first = 0;  // of the rows of all heads
  int64_t count = 0;  // at most kPanelRows
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

  float* rows_of(float* states, const Panel& panel) const { return states + panel.first * sizes.width; }
  size_t bytes_of(const Panel& panel) const { return static_cast<size_t>(panel.count * sizes.width) * sizeof(float); }
  int64_t first_recorded() const { return tokens - plan.num_recorded; }
  int64_t ring_row(int64_t token) const { return (plan.first_recorded + token - first_recorded()) % plan.num_rows; }

  // Brings rows of the state to where the call begins.
  void load(const Panel& panel, const PanelMemory& spare) const {
    float* to = rows_of(state.tensor.as<float>(), panel);
    const float* from = plan.source == nullptr ? to : plan.source + state.offset + panel.first * sizes.width;
    int64_t row = plan.first_replayed, left = plan.num_replayed;
    while (left > 0 || from != to) {
      const int64_t count = std::min({left, kChunkTokens, plan.num_rows - row});
      replay(panel, from, to, row, count, spare);
      from = to;
      left -= count;
      row = (row + count) % plan.num_rows;
    }
  }

  // `count` tokens, at most kChunkTokens, that lie side by side in the ring.
  void replay(const Panel& panel, const float* from, float* to, int64_t ring_row, int64_t count,
              const PanelMemory& spare) const {
    const int64_t step = state.row_floats;
    const float* ring = state.rows + ring_row * step;
    ChunkOperands kept{
        {ring, step, sizes.width, 1}, {ring + sizes.keys(), step, sizes.per_head, 1}, {}, panel.key_head};
    if (sizes.decays > 0) kept.decay = {ring + sizes.keys() + sizes.num_rows(), step, sizes.decays, 1};
    const bool is_copied = count > kFewTokens;
    if (is_copied) {
      copy_chunk(kept, panel, count, spare);
      fetch_next(panel, ring, count);
    }
    const LinearAttentionTokens all{.q = {},
                                    .k = kept.k.series(0, kept.key_head, 0),
                                    .tokens = count,
                                    .width = sizes.width,
                                    .decay_is_vector = sizes.has_vector_decay};
    for_each_rows(functions.replay, all, panel, [&](int64_t row) {
      const int64_t index = panel.first + row, head = index / sizes.per_head;
      return LinearAttentionRow{.state = to + row * sizes.width,
                                .from = from + row * sizes.width,
                                .v = is_copied ? kept.v.series(0, 0, row) : kept.v.series(0, 0, index),
                                .decay = kept.decay.series(0, head - kept.first_decay, 0)};
    });
  }

  // Lines of the ring that the panel behind this one reads: a few of each token, far apart.
  void fetch_next(const Panel& panel, const float* ring, int64_t count) const {
    const float* keys = ring + (panel.first + panel.count) * sizes.key_heads / sizes.num_rows() * sizes.width;
    const float* updates = ring + sizes.keys() + panel.first + panel.count;
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t i = 0; i < sizes.width; i += 16) __builtin_prefetch(keys + t * state.row_floats + i);
      for (int64_t i = 0; i < panel.count; i += 16) __builtin_prefetch(updates + t * state.row_floats + i);
    }
  }

  // Runs the tokens with row_of(row) for each row of a panel, as many at once as the kernel takes.
  template <typename Function, typename RowOf>
  static void for_each_rows(const Function& function, const LinearAttentionTokens& all, const Panel& panel,
                            const RowOf& row_of) {
    for (int64_t at = 0; at < panel.count; at += kLinearAttentionRows) {
      LinearAttentionRow rows[kLinearAttentionRows];
      const auto count = static_cast<int>(std::min<int64_t>(kLinearAttentionRows, panel.count - at));
      for (int r = 0; r < count; ++r) rows[r] = row_of(at + r);
      function(all, rows, count);
    }
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

  void run(const Panel& panel, const PanelMemory& spare) const {
    load(panel, spare);
    float* memory = rows_of(state.tensor.as<float>(), panel);
    for (int64_t token = 0;;) {
      for (const RecurrentCopy& copy : plan.copies) {
        if (copy.tokens == token) std::memcpy(rows_of(copy.to + state.offset, panel), memory, bytes_of(panel));
      }
      if (token == tokens) return;
      if (token == plan.num_kept) {
        std::memcpy(spare.state, memory, bytes_of(panel));
        memory = spare.state;
      }
      const int64_t stop = next_stop(token);
      for (int64_t at = token; at < stop; at += kChunkTokens)
        run_chunk(panel, memory, at, std::min(at + kChunkTokens, stop), spare);
      token = stop;
    }
  }

  // At most kChunkTokens, of which either all or none are recorded.
  void run_chunk(const Panel& panel, float* memory, int64_t begin, int64_t end, const PanelMemory& spare) const {
    const int64_t at = first + begin, count = end - begin;
    Operand q = operands[0].from(at);
    ChunkOperands own{operands[1].from(at), operands[2].from(at), operands[3].from(at), panel.key_head};
    float* y = call.outputs[0]->as<float>() + at * sizes.num_rows() + panel.first;
    const bool is_copied = count > kFewTokens;
    if (is_copied) {
      q = copied(q, panel.key_head, 1, sizes.width, count, spare.q);
      copy_chunk(own, panel, count, spare);
    }
    const LinearAttentionTokens all{q.series(0, own.key_head, 0),
                                    own.k.series(0, own.key_head, 0),
                                    count,
                                    sizes.width,
                                    is_copied ? panel.count : sizes.num_rows(),
                                    state.row_floats,
                                    sizes.has_vector_decay};
    const bool records = plan.num_recorded > 0 && begin >= first_recorded();
    float* updates = records ? state.rows + ring_row(begin) * state.row_floats + sizes.keys() : nullptr;
    for_each_rows(functions.run, all, panel, [&](int64_t row) {
      const int64_t index = panel.first + row, head = index / sizes.per_head;
      return LinearAttentionRow{
          .state = memory + row * sizes.width,
          .v = is_copied ? own.v.series(0, 0, row) : own.v.series(0, head, index % sizes.per_head),
          .decay = own.decay.series(0, head - own.first_decay, 0),
          .beta = operands[4].series(at, head, 0),
          .y = (is_copied ? spare.y : y) + row,
          .update = records ? updates + index : nullptr};
    });
    if (!is_copied) return;
    for (int64_t t = 0; t < count; ++t) copy_floats(spare.y + t * panel.count, panel.count, y + t * sizes.num_rows());
  }

  struct ChunkOperands {
    Operand k, v, decay;
    int64_t key_head = 0;     // of the panel, in k
    int64_t first_decay = 0;  // head of the first of `decay`
  };

  // Copies them next to each other.
  void copy_chunk(ChunkOperands& chunk, const Panel& panel, int64_t count, const PanelMemory& spare) const {
    chunk.k = copied(chunk.k, panel.key_head, 1, sizes.width, count, spare.k);
    chunk.key_head = 0;
    chunk.v = copied_rows(chunk.v, panel, count, spare.v);
    const int64_t head = panel.first / sizes.per_head;
    const int64_t num_heads = (panel.first + panel.count - 1) / sizes.per_head - head + 1;
    if (!sizes.has_vector_decay || num_heads * sizes.width > kCopiedDecays) return;
    chunk.decay = copied(chunk.decay, head, num_heads, sizes.width, count, spare.decays);
    chunk.first_decay = head;
  }

  // The tokens of some heads: [count, num_heads, width].
  static Operand copied(const Operand& from, int64_t head, int64_t num_heads, int64_t width, int64_t count, float* to) {
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t h = 0; h < num_heads; ++h)
        copy_floats(from.data + t * from.token + (head + h) * from.head, width, to + (t * num_heads + h) * width);
    }
    return {to, num_heads * width, width, 1};
  }

  // The values of a panel's rows: [count, panel.count].
  Operand copied_rows(const Operand& v, const Panel& panel, int64_t count, float* to) const {
    const bool is_even = v.head == sizes.per_head * v.element;  // from head to head as within one
    for (int64_t row = 0; row < panel.count;) {
      const int64_t index = panel.first + row, element = index % sizes.per_head;
      const int64_t neighbours = is_even ? panel.count : std::min(sizes.per_head - element, panel.count - row);
      const float* from = v.series(0, index / sizes.per_head, element).first;
      for (int64_t t = 0; t < count; ++t) {
        float* own = to + t * panel.count + row;
        for (int64_t i = 0; i < neighbours && v.element != 1; ++i) own[i] = from[t * v.token + i * v.element];
        if (v.element == 1) copy_floats(from + t * v.token, neighbours, own);
      }
      row += neighbours;
    }
    return {to, panel.count, 0, 1};
  }

  // The keys and decays of a token into the ring.
  void record(int64_t token) const {
    float* to = state.rows + ring_row(token) * state.row_floats;
    const auto copy_head = [&](const Operand& from, int64_t head, int64_t count, float* part) {
      copy_floats(from.series(first + token, head, 0).first, count, part + head * count);
    };
    for (int64_t head = 0; head < sizes.key_heads; ++head) copy_head(operands[1], head, sizes.width, to);
    if (sizes.decays == 0) return;
    float* decays = to + sizes.keys() + sizes.num_rows();
    for (int64_t head = 0; head < sizes.heads; ++head) copy_head(operands[3], head, sizes.decays, decays);
  }
};

// Calls body(panel, thread) for the rows of the state, which threads divide.
template <typename Body>
void for_each_panel(const StateSizes& sizes, int64_t tokens, KernelContext& context, const Body& body) {
  const int64_t rows = sizes.num_rows() / sizes.key_heads;  // of a head of keys
  const int64_t share = sizes.num_rows() / (2 * context.threads->num_threads());
  const int64_t panel_rows =
      std::clamp<int64_t>(share / kLinearAttentionRows * kLinearAttentionRows, kLinearAttentionRows, kPanelRows);
  const int64_t panels = (rows + panel_rows - 1) / panel_rows;
  const int64_t grain = row_grain(tokens * sizes.width * panel_rows);
  context.threads->parallel_for(sizes.key_heads * panels, grain, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % panels * panel_rows, key_head = i / panels;
      body(Panel{key_head, key_head * rows + at, std::min(panel_rows, rows - at)}, thread);
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
  const int64_t width = call.inputs[1]->size(3), spare_floats = PanelMemory::floats(width);
  float* spare = scratch.take<float>(context.threads->num_threads() * spare_floats);
  Operand operands[5];
  for (size_t i = 0; i < std::size(operands); ++i) {
    const bool in_rows = std::ranges::find(kRowInputs, i) != std::end(kRowInputs);
    operands[i] = operand_of(optional_input(call, i), in_rows, scratch, context);
  }
  return for_each_sequence(call, operands, context, [&](const Sequence& sequence) {
    for_each_panel(sequence.sizes, sequence.tokens + sequence.plan.num_replayed, context,
                   [&](const Panel& panel, int thread) {
                     sequence.run(panel, PanelMemory(spare + thread * spare_floats, width));
                   });
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
  Scratch scratch(context.scratch);
  const int64_t width = call.inputs[1]->size(3), spare_floats = PanelMemory::floats(width);
  float* spare = scratch.take<float>(context.threads->num_threads() * spare_floats);
  return for_each_sequence(call, nullptr, context, [&](const Sequence& sequence) {
    for_each_panel(sequence.sizes, sequence.plan.num_replayed + 1, context, [&](const Panel& panel, int thread) {
      sequence.load(panel, PanelMemory(spare + thread * spare_floats, width));
    });
  });
}

// With the states, which are read and written, and what is recorded.
Cost linear_attention_cost(const Call& call, const KernelContext& context) {
  Cost cost = operand_cost(call, context);
  const StateSizes sizes(call);
  const int64_t elements = sizes.num_rows() * sizes.width, products = optional_input(call, 4) == nullptr ? 2 : 3;
  for (const SequenceStates& states : context.sequences) {
    const int64_t recorded = states.recurrent == nullptr ? 0 : states.recurrent->num_recorded;
    cost.bytes += (2 * elements + recorded * sizes.row_floats()) * static_cast<int64_t>(sizeof(float));
    cost.macs += products * elements * states.tokens;
  }
  return cost;
}

OutputAxis linear_attention_axis(const SymbolicCall& call) { return tokens_at(call, {1, 1, 1, 1, 1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.linear_attention", .check = check_linear_attention,
                 .scratch_bytes = linear_attention_scratch_bytes, .run = run_linear_attention,
                 .token_axis = linear_attention_axis, .cost = linear_attention_cost,
                 .recurrent_rows = linear_attention_rows, .replay = replay_linear_attention);

}  // namespace mote
