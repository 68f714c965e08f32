// mote.head_linear: the product of each head's row with a matrix of its own.
#include <algorithm>
#include <limits>

#include "kernels/op.h"
#include "kernels/ops/linear/product.h"
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"
#include "kernels/support/rows.h"

namespace mote {

namespace {

constexpr int64_t kHeadTokens = 32;  // in one product
constexpr int64_t kHeadBlocks = kHeadTokens / kTokenBlock;
constexpr int64_t kHeadWide = kMaxStreams * kTileRows;

struct HeadLinearParams {
  Product product;
};

int64_t blocks_of(int64_t tokens) { return (tokens + kTokenBlock - 1) / kTokenBlock; }

// Rows of x sorted by head: row t * heads + h is at place h * tokens + t.
RowOrder order_by_head(int64_t tokens, int64_t heads, Scratch& scratch) {
  const int64_t blocks = blocks_of(tokens);
  auto* rows = scratch.take<int32_t>(tokens * heads);
  auto* block_of = scratch.take<int32_t>(tokens * heads);
  auto* first = scratch.take<int32_t>(blocks * heads + 1);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t t = 0; t < tokens; ++t) {
      rows[h * tokens + t] = static_cast<int32_t>(t * heads + h);
      block_of[h * tokens + t] = static_cast<int32_t>(h * blocks + t / kTokenBlock);
    }
    for (int64_t b = 0; b < blocks; ++b) first[h * blocks + b] = static_cast<int32_t>(h * tokens + b * kTokenBlock);
  }
  first[blocks * heads] = static_cast<int32_t>(tokens * heads);
  return {rows, block_of, first, blocks * heads};
}

size_t thread_bytes_of(const Call& call) {
  const size_t own = call.get_params<HeadLinearParams>().product.scratch_bytes(matrix_of(*call.inputs[1], 0));
  return array_bytes<float>(kHeadTokens * kHeadWide) + array_bytes<std::byte>(static_cast<int64_t>(own));
}

size_t head_linear_scratch_bytes(const Call& call, int num_threads) {
  const int64_t heads = call.inputs[1]->size(0), rows = num_rows(*call.inputs[0]);
  if (rows == 0) return 0;
  const int64_t blocks = blocks_of(rows / heads) * heads;
  return 2 * array_bytes<int32_t>(rows) + array_bytes<int32_t>(blocks + 1) +
         activations_bytes(call.get_params<HeadLinearParams>().product.x, matrix_of(*call.inputs[1], 0), rows, blocks,
                           num_threads) +
         static_cast<size_t>(num_threads) * thread_bytes_of(call);
}

// Columns [n, n + kHeadWide) of y for all tokens of one head.
void multiply_head(const Call& call, const Activations& x, int64_t head, int64_t n, std::byte* memory) {
  const Product& product = call.get_params<HeadLinearParams>().product;
  const Tensor& weight = *call.inputs[1];
  const int64_t heads = weight.size(0), width = weight.size(1), blocks = x.num_blocks / heads;
  auto* results = reinterpret_cast<float*>(memory);
  Streams streams;
  for (int64_t row = n; row < std::min(n + kHeadWide, width); row += kTileRows) streams.add(row);
  for (int64_t block = head * blocks; block < (head + 1) * blocks; block += kHeadBlocks) {
    const int64_t count = std::min(kHeadBlocks, (head + 1) * blocks - block);
    multiply_streams(product, matrix_of(weight, head), streams, x, block, count, results, kHeadWide,
                     memory + array_bytes<float>(kHeadTokens * kHeadWide));
    const int64_t first = x.first_row(block) - x.first_row(head * blocks);
    for (int64_t i = 0; i < x.first_row(block + count) - x.first_row(block); ++i) {
      float* to = call.outputs[0]->as<float>() + ((first + i) * heads + head) * width + n;
      product.x.rows->finish(results + i * kHeadWide, nullptr, nullptr, std::min(kHeadWide, width - n), to);
    }
  }
}

Status run_head_linear(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  const int64_t heads = weight.size(0), tokens = num_rows(x) / heads;
  if (tokens == 0) return Status();
  Scratch scratch(context.scratch);
  const RowOrder order = order_by_head(tokens, heads, scratch);
  const Activations rows = prepare_activations(call.get_params<HeadLinearParams>().product.x, x, FusedNorm(),
                                               matrix_of(weight, 0), &order, scratch, *context.threads);
  const auto stride = static_cast<int64_t>(thread_bytes_of(call));
  std::byte* memory = scratch.take<std::byte>(stride * context.threads->num_threads());
  const int64_t strips = (weight.size(1) + kHeadWide - 1) / kHeadWide;
  const int64_t grain = row_grain(tokens * kHeadWide * weight.size(2));
  context.threads->parallel_for(heads * strips, grain, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t task = begin; task < end; ++task) {
      multiply_head(call, rows, task / strips, task % strips * kHeadWide, memory + thread * stride);
    }
  });
  return Status();
}

Status check_head_linear(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 2, 1));
  const Tensor& x = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 2, kMaxRank));
  MOTE_RETURN_IF_ERROR(expect_weight(weight, "weight", 3));
  const bool fits = x.size(-2) == weight.size(0) && x.size(-1) == weight.size(2);
  MOTE_REQUIRE(fits && weight.size(0) >= 1 && weight.size(2) >= 1, Code::kInvalidProgram,
               "x has %lld heads of %lld: must be %lld of %lld, as the weight, and at least one of one",
               static_cast<long long>(x.size(-2)), static_cast<long long>(x.size(-1)),
               static_cast<long long>(weight.size(0)), static_cast<long long>(weight.size(2)));
  MOTE_REQUIRE(num_rows(x) < std::numeric_limits<int32_t>::max(), Code::kInvalidProgram,
               "x has %lld rows: must be below 2^31", static_cast<long long>(num_rows(x)));
  MOTE_ASSIGN(const int rounding, choice(call, "activations", kInputNames));
  const int64_t tokens = std::clamp<int64_t>(num_rows(x) / weight.size(0), 1, kHeadTokens);
  HeadLinearParams params;
  MOTE_ASSIGN(params.product,
              select_product(static_cast<InputRounding>(rounding), weight, tokens, call.packed_weights));
  call.make_params<HeadLinearParams>() = params;
  Sizes sizes = Sizes::of(x);
  sizes[-1] = weight.size(1);
  return expect_output(call, 0, DType::kFloat32, sizes.span());
}

// Heads must not be tokens: each has a matrix of its own.
OutputAxis head_linear_axis(const SymbolicCall& call) {
  const TokenAxis x = call.axis(0);
  return x.exists() && x.dim >= call.rank(0) - 2 ? OutputAxis(kMixesTokens) : x;
}

Cost head_linear_cost(const Call& call, const KernelContext&) {
  return {operand_bytes(call), call.inputs[0]->num_elements() * call.inputs[1]->size(1)};
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.head_linear", .check = check_head_linear, .scratch_bytes = head_linear_scratch_bytes,
                 .run = run_head_linear, .token_axis = head_linear_axis, .cost = head_linear_cost);

}  // namespace mote
