// mote.attention: appends keys and values to the cache, then attends over it.
#include <algorithm>

#include "kernels/attention/attend.h"
#include "kernels/attention/cache.h"
#include "kernels/contract.h"
#include "kernels/math.h"
#include "kernels/rows.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;
enum Input : size_t { kQuery = 0, kKey, kValue, kPositions, kSinks, kSlopes };

Result<StateShape> cache_shape(const Call& call, const AttentionParams& params) {
  MOTE_REQUIRE(static_cast<size_t>(params.state) < call.state_shapes.size(), kBad, "attribute 'state' = %lld: must be below %zu",
               static_cast<long long>(params.state), call.state_shapes.size());
  const StateShape& shape = call.state_shapes[static_cast<size_t>(params.state)];
  MOTE_REQUIRE(shape.is_kv_cache, kBad, "attribute 'state' = %lld is not a KV cache", static_cast<long long>(params.state));
  MOTE_REQUIRE(shape.num_heads > 0 && shape.head_dim >= 0 && shape.value_head_dim >= 0 && shape.window >= 0, kBad,
               "the cache has %d heads of %d and %d: must be positive", shape.num_heads, shape.head_dim, shape.value_head_dim);
  MOTE_REQUIRE(shape.window == 0 || (params.window > 0 && params.window <= shape.window), kBad,
               "attribute 'window' = %lld: must be 1..%d, which the cache keeps", static_cast<long long>(params.window),
               shape.window);
  return shape;
}

Status check_operands(const Call& call, const StateShape& shape) {
  const Tensor& q = *call.inputs[kQuery];
  const int64_t tokens = q.size(2);
  MOTE_RETURN_IF_ERROR(expect_sizes(q, "q", {1, q.size(1), tokens, shape.head_dim}));
  MOTE_REQUIRE(q.size(1) % shape.num_heads == 0, kBad, "q has %lld heads: must be a multiple of the cache's %d",
               static_cast<long long>(q.size(1)), shape.num_heads);
  const Tensor* k = optional_input(call, kKey);
  const Tensor* v = optional_input(call, kValue);
  MOTE_REQUIRE((k == nullptr) == (v == nullptr), kBad, "k and v must both be present or both absent");
  if (k != nullptr) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*k, "k", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*k, "k", {1, shape.num_heads, tokens, shape.head_dim}));
    MOTE_RETURN_IF_ERROR(expect_dtype(*v, "v", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*v, "v", {1, shape.num_heads, tokens, shape.value_head_dim}));
  }
  MOTE_RETURN_IF_ERROR(expect_present(call, kPositions, "positions"));
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[kPositions], "positions", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_sizes(*call.inputs[kPositions], "positions", {1, tokens}));
  if (const Tensor* sinks = optional_input(call, kSinks)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*sinks, "sinks", {q.size(1)}));
  }
  if (const Tensor* slopes = optional_input(call, kSlopes)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*slopes, "alibi_slopes", {q.size(1)}));
  }
  const int64_t out[] = {1, tokens, q.size(1), shape.value_head_dim};
  return expect_output(call, 0, DType::kFloat32, out);
}

Status check_attention(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 6, 1));
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[kQuery], "q", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(*call.inputs[kQuery], "q", 4, 4));
  AttentionParams params;
  MOTE_ASSIGN(params.state, integer_in(call, "state", 0, std::numeric_limits<int32_t>::max()));
  MOTE_ASSIGN(params.window, integer_or(call, "window", 0, 0, kMaxTensorElements));
  MOTE_ASSIGN(const double scale, call.number("scale"));
  MOTE_ASSIGN(const double softcap, number_or(call, "softcap", 0.0));
  params.scale = static_cast<float>(scale);
  params.softcap = static_cast<float>(softcap);
  MOTE_ASSIGN(const StateShape shape, cache_shape(call, params));
  MOTE_RETURN_IF_ERROR(check_operands(call, shape));
  call.make_params<AttentionParams>() = params;
  return Status();
}

size_t attention_scratch(const Call& call, int num_threads) {
  return static_cast<size_t>(num_threads) * QueryBlock::bytes(call.inputs[kQuery]->size(3), call.outputs[0]->size(3));
}

// Gives each thread its part of the scratch memory.
struct Workspace {
  std::span<std::byte> scratch;
  int64_t head_dim;
  int64_t value_head_dim;

  QueryBlock block(int thread) const {
    Scratch part(scratch.subspan(static_cast<size_t>(thread) * QueryBlock::bytes(head_dim, value_head_dim)));
    QueryBlock block;
    block.place(part, head_dim, value_head_dim);
    return block;
  }
};

int64_t position_at(const Tensor& positions, int64_t token) {
  return positions.as<int64_t>()[token * positions.stride(1)];
}

// A cache that a session made for another shape would be read out of bounds.
Status check_cache(const KvCache& cache, const StateShape& shape) {
  const bool matches = cache.keys != nullptr && cache.values != nullptr && cache.positions != nullptr &&
                       cache.num_heads == shape.num_heads && cache.head_dim == shape.head_dim &&
                       cache.value_head_dim == shape.value_head_dim && cache.window == shape.window &&
                       cache.num_sinks >= 0 && cache.capacity > cache.num_sinks;
  MOTE_REQUIRE(matches, Code::kInternal, "the session's cache has another shape than the program's state");
  return Status();
}

Status check_positions(const KvCache& cache, const Tensor& positions, int64_t tokens) {
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t position = position_at(positions, t);
    MOTE_REQUIRE(position >= 0 && position < kMaxTensorElements, Code::kInvalidArgument,
                 "positions[%lld] = %lld: must be 0..2^40", static_cast<long long>(t), static_cast<long long>(position));
    MOTE_REQUIRE(cache.window != 0 || position < cache.capacity, Code::kContextFull,
                 "position %lld does not fit: the context holds %lld", static_cast<long long>(position),
                 static_cast<long long>(cache.capacity));
  }
  const int64_t most = cache.capacity - cache.num_sinks - cache.window + 1;
  MOTE_REQUIRE(cache.window == 0 || tokens <= most, Code::kInvalidArgument,
               "%lld tokens in one call: must be at most %lld, which the sliding window's cache holds",
               static_cast<long long>(tokens), static_cast<long long>(most));
  return Status();
}

// Heads are split over threads, so that a slot is written by one of them whatever the positions are.
void append(KvCache& cache, const Tensor& k, const Tensor& v, const Tensor& positions, const Workspace& workspace,
            ThreadPool& threads) {
  const int64_t tokens = k.size(2);
  const int64_t key_bytes = kv_row_bytes(cache.type, cache.head_dim);
  const int64_t value_bytes = kv_row_bytes(cache.type, cache.value_head_dim);
  threads.parallel_for(cache.num_heads, row_grain(tokens * (cache.head_dim + cache.value_head_dim)),
                       [&](int64_t begin, int64_t end, int thread) {
    const QueryBlock block = workspace.block(thread);
    for (int64_t head = begin; head < end; ++head) {
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t row = cache.slot_of(position_at(positions, t)) * cache.num_heads + head;
        const float* key = read_row(k, head * tokens + t, block.keys);
        const float* value = read_row(v, head * tokens + t, block.values);
        write_kv_row(cache.type, key, cache.head_dim, static_cast<std::byte*>(cache.keys) + row * key_bytes);
        write_kv_row(cache.type, value, cache.value_head_dim, static_cast<std::byte*>(cache.values) + row * value_bytes);
      }
    }
  });
  for (int64_t t = 0; t < tokens; ++t) cache.positions[cache.slot_of(position_at(positions, t))] = position_at(positions, t);
}

// One task: some heads that share a head of the cache, times some tokens.
struct Task {
  int64_t first_head;
  int64_t num_heads;
  int64_t first_token;
  int64_t num_tokens;
};

void load_queries(const Call& call, const Task& task, int64_t head_dim, QueryBlock& block) {
  const Tensor& q = *call.inputs[kQuery];
  const Tensor* slopes = optional_input(call, kSlopes);
  block.rows = task.num_heads * task.num_tokens;
  for (int64_t row = 0; row < block.rows; ++row) {
    const int64_t head = task.first_head + row / task.num_tokens, token = task.first_token + row % task.num_tokens;
    copy_row(q, head * q.size(2) + token, block.queries + row * head_dim);
    block.positions[row] = position_at(*call.inputs[kPositions], token);
    block.slopes[row] = slopes == nullptr ? 0.0f : slopes->as<float>()[head];
  }
}

// The learned logit of a head joins the denominator only.
void join_sink(float sink, float& maximum, float& total, float& factor) {
  const float joined = sink > maximum ? sink : maximum;
  factor = math::exp(maximum - joined);
  total = total * factor + math::exp(sink - joined);
  maximum = joined;
}

void store_outputs(const Call& call, const Task& task, QueryBlock& block) {
  const Tensor& out = *call.outputs[0];
  const Tensor* sinks = optional_input(call, kSinks);
  const int64_t heads = out.size(2), width = out.size(3);
  for (int64_t row = 0; row < block.rows; ++row) {
    const int64_t head = task.first_head + row / task.num_tokens, token = task.first_token + row % task.num_tokens;
    float factor = 1.0f;
    if (sinks != nullptr) join_sink(sinks->as<float>()[head], block.maxima[row], block.totals[row], factor);
    factor = block.totals[row] != 0 ? factor / block.totals[row] : 0.0f;
    float* to = out.as<float>() + (token * heads + head) * width;
    for (int64_t d = 0; d < width; ++d) to[d] = block.sums[row * width + d] * factor;
  }
}

void attend_all(const Call& call, const KvCache& cache, const Workspace& workspace, ThreadPool& threads) {
  const AttentionParams params = call.get_params<AttentionParams>();
  const int64_t heads = call.inputs[kQuery]->size(1), tokens = call.inputs[kQuery]->size(2);
  const int64_t group = heads / cache.num_heads;
  // Sharing converted keys among a group's heads pays unless threads would idle.
  const int64_t together = cache.num_heads * tokens < threads.num_threads() ? 1 : std::clamp<int64_t>(group, 1, 16);
  const int64_t splits = (group + together - 1) / together;
  const int64_t token_block = kQueryRows / together;
  const int64_t token_blocks = (tokens + token_block - 1) / token_block;
  threads.parallel_for(cache.num_heads * splits * token_blocks, 1, [&](int64_t begin, int64_t end, int thread) {
    QueryBlock block = workspace.block(thread);
    for (int64_t index = begin; index < end; ++index) {
      const int64_t part = index / token_blocks, head = part / splits, split = part % splits;
      Task task;
      task.first_head = head * group + split * together;
      task.num_heads = std::min(together, group - split * together);
      task.first_token = index % token_blocks * token_block;
      task.num_tokens = std::min(token_block, tokens - task.first_token);
      load_queries(call, task, cache.head_dim, block);
      attend(cache, head, params, block);
      store_outputs(call, task, block);
    }
  });
}

Status run_attention(const Call& call, KernelContext& context) {
  const auto state = static_cast<size_t>(call.get_params<AttentionParams>().state);
  MOTE_REQUIRE(state < context.kv_caches.size(), Code::kInternal, "the session has no cache for state %zu", state);
  KvCache& cache = context.kv_caches[state];
  MOTE_RETURN_IF_ERROR(check_cache(cache, call.state_shapes[state]));
  const Tensor& positions = *call.inputs[kPositions];
  MOTE_RETURN_IF_ERROR(check_positions(cache, positions, positions.size(1)));
  const Workspace workspace{context.scratch, cache.head_dim, cache.value_head_dim};
  if (const Tensor* k = optional_input(call, kKey)) {
    append(cache, *k, *call.inputs[kValue], positions, workspace, *context.threads);
  }
  attend_all(call, cache, workspace, *context.threads);
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.attention", .check = check_attention, .scratch_bytes = attention_scratch, .run = run_attention);

}  // namespace mote
