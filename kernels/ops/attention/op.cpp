// mote.attention: appends keys and values to the cache, then attends over it. mote.attention_lse also gives the
// logarithm of what the softmax divides by, with which calls over parts of what a query sees are added up.
#include <limits>

#include "kernels/kernel.h"
#include "kernels/ops/attention/cache.h"
#include "kernels/ops/attention/tasks.h"
#include "kernels/ops/attention/trials.h"
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;

Result<StateShape> cache_shape(const Call& call, const AttentionParams& params) {
  MOTE_REQUIRE(static_cast<size_t>(params.state) < call.state_shapes.size(), kBad,
               "attribute 'state' = %lld: must be below %zu", static_cast<long long>(params.state),
               call.state_shapes.size());
  const StateShape& shape = call.state_shapes[static_cast<size_t>(params.state)];
  MOTE_REQUIRE(shape.is_kv_cache, kBad, "attribute 'state' = %lld is not a KV cache",
               static_cast<long long>(params.state));
  MOTE_REQUIRE(shape.num_heads > 0 && shape.head_dim >= 0 && shape.value_head_dim >= 0 && shape.window >= 0, kBad,
               "the cache has %d heads of %d and %d and a window of %d: no heads, or a negative number",
               shape.num_heads, shape.head_dim, shape.value_head_dim, shape.window);
  MOTE_REQUIRE(shape.window == 0 || (params.window > 0 && params.window <= shape.window), kBad,
               "attribute 'window' = %lld: must be 1..%d, which the cache keeps", static_cast<long long>(params.window),
               shape.window);
  return shape;
}

// Operands of other types of attention: the positions that each token sees, and biases by distance.
Status check_choice(const Call& call, const StateShape& shape) {
  const Tensor& q = *call.inputs[kQuery];
  const int64_t tokens = q.size(2);
  if (const Tensor* chosen = optional_input(call, kChosen)) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*chosen, "chosen", {DType::kInt64}));
    MOTE_RETURN_IF_ERROR(expect_rank(*chosen, "chosen", 4, 4));
    const int64_t groups = chosen->size(2);
    MOTE_RETURN_IF_ERROR(expect_sizes(*chosen, "chosen", {1, tokens, groups, chosen->size(3)}));
    MOTE_REQUIRE(groups >= 1 && shape.num_heads % groups == 0, kBad,
                 "chosen has %lld groups: must divide the cache's %d heads", static_cast<long long>(groups),
                 shape.num_heads);
    MOTE_REQUIRE(chosen->is_contiguous(), kBad, "chosen must be contiguous");
  }
  if (const Tensor* bias = optional_input(call, kBias)) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*bias, "position_bias", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_rank(*bias, "position_bias", 4, 4));
    MOTE_RETURN_IF_ERROR(expect_sizes(*bias, "position_bias", {1, tokens, q.size(1), bias->size(3)}));
    MOTE_REQUIRE(bias->size(3) <= 1 || bias->stride(3) == 1, kBad, "position_bias has a last stride of %lld: must be 1",
                 static_cast<long long>(bias->stride(3)));
  }
  return Status();
}

Status check_operands(const Call& call, const StateShape& shape, int64_t value_dim) {
  const Tensor& q = *call.inputs[kQuery];
  const int64_t tokens = q.size(2);
  MOTE_RETURN_IF_ERROR(expect_sizes(q, "q", {1, q.size(1), tokens, shape.head_dim}));
  MOTE_REQUIRE(q.size(1) % shape.num_heads == 0, kBad, "q has %lld heads: must be a multiple of the cache's %d",
               static_cast<long long>(q.size(1)), shape.num_heads);
  const Tensor* k = optional_input(call, kKey);
  const Tensor* v = optional_input(call, kValue);
  const bool in_keys = value_dim > 0;
  MOTE_REQUIRE(in_keys ? v == nullptr : (k == nullptr) == (v == nullptr), kBad,
               "k and v must both be present or both absent, and v absent with attribute 'value_dim'");
  MOTE_REQUIRE(!in_keys || (value_dim <= shape.head_dim && value_dim % 16 == 0 && shape.value_head_dim == 0), kBad,
               "attribute 'value_dim' = %lld: must be a multiple of 16 up to the cache's head_dim, %d, and the cache's "
               "value_head_dim 0",
               static_cast<long long>(value_dim), shape.head_dim);
  if (k != nullptr) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*k, "k", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*k, "k", {1, shape.num_heads, tokens, shape.head_dim}));
  }
  if (v != nullptr) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*v, "v", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*v, "v", {1, shape.num_heads, tokens, shape.value_head_dim}));
  }
  MOTE_RETURN_IF_ERROR(expect_present(call, kPositions, "positions"));
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[kPositions], "positions", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_sizes(*call.inputs[kPositions], "positions", {1, tokens}));
  if (const Tensor* sinks = optional_input(call, kSinks)) {
    if (sinks->rank == 1) {
      MOTE_RETURN_IF_ERROR(expect_parameter(*sinks, "sinks", {q.size(1)}));
    } else {
      MOTE_RETURN_IF_ERROR(expect_dtype(*sinks, "sinks", {DType::kFloat32}));
      MOTE_RETURN_IF_ERROR(expect_sizes(*sinks, "sinks", {1, tokens, q.size(1)}));
    }
  }
  if (const Tensor* slopes = optional_input(call, kSlopes)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*slopes, "alibi_slopes", {q.size(1)}));
  }
  MOTE_RETURN_IF_ERROR(check_choice(call, shape));
  const int64_t out[] = {1, tokens, q.size(1), in_keys ? value_dim : shape.value_head_dim};
  if (call.outputs.size() > 1) {
    MOTE_RETURN_IF_ERROR(expect_output(call, 1, DType::kFloat32, std::span(out).first<3>()));
  }
  return expect_output(call, 0, DType::kFloat32, out);
}

// The positions of which every query sees the last.
Result<int64_t> stride_of(const Call& call, const AttentionParams& params, const StateShape& shape) {
  MOTE_ASSIGN(const int64_t stride, integer_or(call, "stride", 1, 1, 1 << 20));
  MOTE_REQUIRE(stride == 1 || (params.window == 0 && shape.window == 0), kBad,
               "attribute 'stride' = %lld: must be 1 with a window", static_cast<long long>(stride));
  MOTE_REQUIRE(shape.stride == 1 || shape.stride == stride, kBad,
               "attribute 'stride' = %lld: must be %d, the stride of the cache", static_cast<long long>(stride),
               shape.stride);
  const bool has_distances = optional_input(call, kSlopes) != nullptr || optional_input(call, kBias) != nullptr;
  MOTE_REQUIRE(shape.stride == 1 || !has_distances, kBad,
               "alibi_slopes and position_bias must be absent where the cache has a stride");
  return stride;
}

template <int kOutputs>
Status check_attention(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 8, kOutputs));
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[kQuery], "q", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(*call.inputs[kQuery], "q", 4, 4));
  AttentionParams params;
  MOTE_ASSIGN(params.state, integer_in(call, "state", 0, std::numeric_limits<int32_t>::max()));
  MOTE_ASSIGN(params.window, integer_or(call, "window", 0, 0, kMaxTensorElements));
  MOTE_ASSIGN(const int64_t bidirectional, integer_or(call, "bidirectional", 0, 0, 1));
  params.bidirectional = bidirectional == 1;
  MOTE_ASSIGN(const int64_t chunked, integer_or(call, "chunked", 0, 0, 1));
  params.is_chunked = chunked == 1;
  MOTE_REQUIRE(!params.is_chunked || (params.window > 0 && !params.bidirectional), kBad,
               "attribute 'chunked' = 1: must be 0 without a window and with 'bidirectional'");
  MOTE_ASSIGN(const double scale, call.number("scale"));
  MOTE_ASSIGN(const double softcap, number_or(call, "softcap", 0.0));
  params.scale = static_cast<float>(scale);
  params.softcap = static_cast<float>(softcap);
  MOTE_ASSIGN(const StateShape shape, cache_shape(call, params));
  MOTE_ASSIGN(params.stride, stride_of(call, params, shape));
  // A ring may have written over what a query sees behind it, and ALiBi has no distance of later keys.
  const bool can_look_back = shape.window == 0 && optional_input(call, kSlopes) == nullptr;
  MOTE_REQUIRE(!params.bidirectional || can_look_back, kBad,
               "attribute 'bidirectional' = 1: must be 0 for a cache with a window and with alibi_slopes");
  MOTE_ASSIGN(params.value_dim, integer_or(call, "value_dim", 0, 0, std::numeric_limits<int32_t>::max()));
  MOTE_RETURN_IF_ERROR(check_operands(call, shape, params.value_dim));
  const Tensor& q = *call.inputs[kQuery];
  const Trial trial = attention_trial(shape, q.size(1), q.size(2));
  MOTE_ASSIGN(params.kernel, select_functions<AttentionKernel>({}, q.size(2), &trial));
  call.make_params<AttentionParams>() = params;
  return Status();
}

Status run_attention(const Call& call, KernelContext& context) {
  const auto state = static_cast<size_t>(call.get_params<AttentionParams>().state);
  const Tensor& positions = *call.inputs[kPositions];
  int64_t first = 0;
  for (const SequenceStates& sequence : context.sequences) {
    MOTE_REQUIRE(state < sequence.kv_caches.size(), Code::kInternal, "the session has no cache for state %zu", state);
    const KvCache& cache = sequence.kv_caches[state];
    MOTE_RETURN_IF_ERROR(check_cache(cache, call.state_shapes[state]));
    MOTE_RETURN_IF_ERROR(check_positions(cache, positions, first, sequence.tokens));
    first += sequence.tokens;
  }
  append_and_attend(call, context);
  return Status();
}

OutputAxis attention_axis(const SymbolicCall& call) { return tokens_at(call, {2, 2, 2, 1, 1, -1, 1, 1}); }

// Bytes of keys or values of `elements` numbers, with their scales.
int64_t cached_bytes(KvType type, int64_t elements) {
  switch (type) {
    case KvType::kFloat32: return 4 * elements;
    case KvType::kFloat16: return 2 * elements;
    case KvType::kInt8: return elements + 4 * elements / kKvGroup;
    case KvType::kInt4: return elements / 2 + 4 * elements / kKvGroup;
  }
  return 0;
}

// Adds the keys and values that the queries see.
Cost attention_cost(const Call& call, const KernelContext& context) {
  const Tensor& q = *call.inputs[kQuery];
  Cost cost{operand_bytes(call), 0};
  if (q.size(2) == 0) return cost;
  const AttentionParams& params = call.get_params<AttentionParams>();
  int64_t begin = 0;
  for (const SequenceStates& sequence : context.sequences) {
    const KvCache& cache = sequence.kv_caches[static_cast<size_t>(params.state)];
    const int64_t limit = params.window > 0 ? params.window + cache.num_sinks : INT64_MAX;
    const int64_t width = int64_t{cache.head_dim} + cache.value_head_dim;
    int64_t seen = 0;  // by all queries
    int64_t last = 0;
    for (int64_t t = begin; t < begin + sequence.tokens; ++t) {
      last = std::max(last, position_at(*call.inputs[kPositions], t) + 1);
    }
    for (int64_t t = begin; t < begin + sequence.tokens; ++t) {
      const int64_t position = position_at(*call.inputs[kPositions], t);
      const int64_t behind = params.bidirectional ? std::min(last - 1 - position, limit - 1) : 0;
      seen += (std::min(position + 1, limit) + behind) / params.stride;
    }
    const int64_t rows = (limit == INT64_MAX ? last : std::min(last, limit + sequence.tokens - 1)) / params.stride;
    cost.bytes += cached_bytes(cache.type, rows * cache.num_heads * width);
    cost.macs += seen * q.size(1) * (width + params.value_dim);
    begin += sequence.tokens;
  }
  return cost;
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.attention", .check = check_attention<1>, .scratch_bytes = attention_scratch_bytes,
                 .run = run_attention, .token_axis = attention_axis, .cost = attention_cost);
MOTE_REGISTER_OP(.name = "mote.attention_lse", .check = check_attention<2>, .scratch_bytes = attention_scratch_bytes,
                 .run = run_attention, .token_axis = attention_axis, .cost = attention_cost);

}  // namespace mote
