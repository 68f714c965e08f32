// mote.moe_experts: choices are sorted by expert, so that each expert's tiles are read once for all of its tokens.
#include <limits>

#include "kernels/contract.h"
#include "kernels/gate.h"
#include "kernels/linear/products.h"
#include "kernels/moe/routing.h"
#include "kernels/rows.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;
enum Input : size_t { kX = 0, kIndices, kWeights, kGateUp, kDown, kGateUpBias, kDownBias };
enum class GateLayout : int { kConcatenated = 0, kInterleaved, kSingle };

struct MoeParams {
  ActivationMode gate_up_mode = ActivationMode::kFloat;
  ActivationMode down_mode = ActivationMode::kFloat;
  Gate gate = Gate::kSilu;
  GateLayout layout = GateLayout::kConcatenated;
  float limit = 0;
  float alpha = 0;
};

Status read_attributes(const Call& call, MoeParams& params) {
  MOTE_ASSIGN(const int int8, choice(call, "activations", {"float", "int8"}));
  params.gate_up_mode = activation_mode(int8 == 1, *call.inputs[kGateUp]);
  params.down_mode = activation_mode(int8 == 1, *call.inputs[kDown]);
  MOTE_ASSIGN(const int gate, choice(call, "function", kGateNames));
  params.gate = static_cast<Gate>(gate);
  MOTE_ASSIGN(const int layout, choice(call, "layout", {"concatenated", "interleaved", "single"}));
  params.layout = static_cast<GateLayout>(layout);
  MOTE_ASSIGN(const double limit, number_or(call, "limit", 0.0));
  MOTE_ASSIGN(const double alpha, number_or(call, "alpha", 0.0));
  params.limit = static_cast<float>(limit);
  params.alpha = static_cast<float>(alpha);
  return Status();
}

Status check_experts(const Call& call, GateLayout layout) {
  const Tensor& gate_up = *call.inputs[kGateUp];
  const Tensor& down = *call.inputs[kDown];
  const int64_t width = call.inputs[kX]->size(1), experts = gate_up.size(0), rows = gate_up.size(1);
  const int64_t halves = layout == GateLayout::kSingle ? 1 : 2;
  MOTE_REQUIRE(rows % halves == 0, kBad, "gate_up has %lld rows: must be even, gate and up", static_cast<long long>(rows));
  MOTE_REQUIRE(experts < std::numeric_limits<int32_t>::max(), kBad, "gate_up has %lld experts: must be below 2^31",
               static_cast<long long>(experts));
  MOTE_RETURN_IF_ERROR(expect_sizes(gate_up, "gate_up", {experts, rows, width}));
  MOTE_RETURN_IF_ERROR(expect_sizes(down, "down", {experts, width, rows / halves}));
  if (const Tensor* bias = optional_input(call, kGateUpBias)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "gate_up_bias", {experts, rows}));
  }
  if (const Tensor* bias = optional_input(call, kDownBias)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "down_bias", {experts, width}));
  }
  return Status();
}

Status check_moe(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 5, 7, 1));
  const Tensor& x = *call.inputs[kX];
  const Tensor& indices = *call.inputs[kIndices];
  const Tensor& weights = *call.inputs[kWeights];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 2, 2));
  MOTE_RETURN_IF_ERROR(expect_dtype(indices, "indices", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(indices, "indices", 2, 2));
  MOTE_RETURN_IF_ERROR(expect_sizes(indices, "indices", {x.size(0), indices.size(1)}));
  MOTE_RETURN_IF_ERROR(expect_dtype(weights, "weights", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_sizes(weights, "weights", {x.size(0), indices.size(1)}));
  MOTE_REQUIRE(indices.num_elements() < std::numeric_limits<int32_t>::max(), kBad, "indices has %lld elements: must be below 2^31",
               static_cast<long long>(indices.num_elements()));
  MOTE_RETURN_IF_ERROR(expect_weight(*call.inputs[kGateUp], "gate_up", 3));
  MOTE_RETURN_IF_ERROR(expect_weight(*call.inputs[kDown], "down", 3));
  MoeParams params;
  MOTE_RETURN_IF_ERROR(read_attributes(call, params));
  MOTE_RETURN_IF_ERROR(check_experts(call, params.layout));
  call.make_params<MoeParams>() = params;
  return expect_output(call, 0, DType::kFloat32, Sizes::of(x).span());
}

int64_t buffer_floats(const Call& call) {
  return std::max(product_buffer(matrix_of(*call.inputs[kGateUp], 0)), product_buffer(matrix_of(*call.inputs[kDown], 0)));
}

size_t moe_scratch(const Call& call, int num_threads) {
  const MoeParams& params = call.get_params<MoeParams>();
  const int64_t tokens = call.inputs[kX]->size(0), width = call.inputs[kX]->size(1);
  const int64_t choices = call.inputs[kIndices]->num_elements(), features = call.inputs[kDown]->size(2);
  return routing_bytes(choices, call.inputs[kGateUp]->size(0)) + activations_bytes(params.gate_up_mode, tokens, width) +
         array_bytes<float>(choices * features) + activations_bytes(params.down_mode, choices, features) +
         array_bytes<float>(choices * width) + static_cast<size_t>(num_threads) * array_bytes<float>(buffer_floats(call));
}

float gated(const MoeParams& params, float gate, float up) {
  if (params.limit != 0) {
    gate = gate > params.limit ? params.limit : gate;
    up = up > params.limit ? params.limit : (up < -params.limit ? -params.limit : up);
  }
  if (params.alpha != 0) return (up + 1.0f) * gate * math::sigmoid(gate * params.alpha);
  return apply(params.gate, gate) * up;
}

// Working memory that all threads share, and one row buffer each.
struct Buffers {
  float* rows = nullptr;
  int64_t stride = 0;
  float* of(int thread) const { return rows + thread * stride; }
};

using Products = float[kTokenBlock][kTileRows];

// Features [16 block, ...) of the hidden layer for `count` sorted choices of an expert from `first` on.
void hidden_block(const MoeParams& params, const Matrix& matrix, const float* bias, const Activations& x, const int32_t* tokens,
                  int64_t block, int64_t count, float* hidden, int64_t features, float* buffer) {
  Products gate, up;
  const int64_t n = block * kTileRows, width = std::min<int64_t>(kTileRows, features - n);
  const bool interleaved = params.layout == GateLayout::kInterleaved, single = params.layout == GateLayout::kSingle;
  // Interleaved: rows 2 n .. 2 n + 31, even ones gate, in two blocks; the second may lie past the end.
  block_products(matrix, x, interleaved ? 2 * block : block, tokens, 0, count, gate, buffer);
  const bool has_second = !single && (!interleaved || (2 * block + 1) * kTileRows < matrix.rows);
  if (has_second) row_products(matrix, x, interleaved ? 2 * n + kTileRows : features + n, tokens, 0, count, up, buffer);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t r = 0; r < width; ++r) {
      const int64_t gate_row = interleaved ? 2 * (n + r) : n + r;
      const int64_t up_row = interleaved ? gate_row + 1 : features + n + r;
      float g = interleaved && r >= 8 ? up[i][2 * r - kTileRows] : gate[i][interleaved ? 2 * r : r];
      if (bias != nullptr) g += bias[gate_row];
      float* to = hidden + i * features + n + r;
      if (single) {
        *to = apply(params.gate, g);
        continue;
      }
      float u = interleaved ? (r >= 8 ? up[i][2 * r + 1 - kTileRows] : gate[i][2 * r + 1]) : up[i][r];
      if (bias != nullptr) u += bias[up_row];
      *to = gated(params, g, u);
    }
  }
}

// body(expert, block, first, count, thread) for each chosen expert, block of its output rows, block of its choices.
template <typename Body>
void for_each_expert_block(const Routing& routing, int64_t outputs, int64_t work, ThreadPool& threads, const Body& body) {
  const int64_t blocks = (outputs + kTileRows - 1) / kTileRows;
  threads.parallel_for(routing.num_active * blocks, row_grain(work), [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t expert = routing.active[index / blocks], last = routing.first(expert) + routing.count(expert);
      for (int64_t first = routing.first(expert); first < last; first += kTokenBlock) {
        body(expert, index % blocks, first, std::min(kTokenBlock, last - first), thread);
      }
    }
  });
}

const float* expert_bias(const Tensor* bias, int64_t expert) {
  return bias == nullptr ? nullptr : bias->as<float>() + expert * bias->size(1);
}

void compute_hidden(const Call& call, const Routing& routing, const Activations& x, float* hidden, const Buffers& buffers,
                    ThreadPool& threads) {
  const MoeParams& params = call.get_params<MoeParams>();
  const int64_t features = call.inputs[kDown]->size(2);
  for_each_expert_block(routing, features, x.width, threads, [&](int64_t expert, int64_t block, int64_t first, int64_t count, int thread) {
    hidden_block(params, matrix_of(*call.inputs[kGateUp], expert), expert_bias(optional_input(call, kGateUpBias), expert), x,
                 routing.tokens + first, block, count, hidden + first * features, features, buffers.of(thread));
  });
}

void compute_outputs(const Call& call, const Routing& routing, const Activations& hidden, float* outputs, const Buffers& buffers,
                     ThreadPool& threads) {
  const int64_t width = call.inputs[kX]->size(1);
  for_each_expert_block(routing, width, hidden.width, threads, [&](int64_t expert, int64_t block, int64_t first, int64_t count, int thread) {
    const float* bias = expert_bias(optional_input(call, kDownBias), expert);
    Products out;
    block_products(matrix_of(*call.inputs[kDown], expert), hidden, block, nullptr, first, count, out, buffers.of(thread));
    const int64_t n = block * kTileRows, rows = std::min<int64_t>(kTileRows, width - n);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t r = 0; bias != nullptr && r < rows; ++r) out[i][r] += bias[n + r];
      std::copy(out[i], out[i] + rows, outputs + (first + i) * width + n);
    }
  });
}

// y[t] = sum over its choices, in their order, of weight * output.
void combine(const Call& call, const Routing& routing, const float* outputs, ThreadPool& threads) {
  const Tensor& weights = *call.inputs[kWeights];
  const Tensor& y = *call.outputs[0];
  const int64_t per_token = weights.size(1), width = y.size(1);
  threads.parallel_for(y.size(0), row_grain(per_token * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      float* row = y.as<float>() + t * width;
      std::fill(row, row + width, 0.0f);
      for (int64_t slot = 0; slot < per_token; ++slot) {
        const float weight = weights.as<float>()[t * weights.stride(0) + slot * weights.stride(1)];
        const float* from = outputs + routing.places[t * per_token + slot] * width;
        for (int64_t d = 0; d < width; ++d) row[d] += weight * from[d];
      }
    }
  });
}

Status run_moe(const Call& call, KernelContext& context) {
  const MoeParams& params = call.get_params<MoeParams>();
  const int64_t choices = call.inputs[kIndices]->num_elements(), features = call.inputs[kDown]->size(2);
  Scratch scratch(context.scratch);
  Routing routing;
  MOTE_RETURN_IF_ERROR(route(*call.inputs[kIndices], call.inputs[kGateUp]->size(0), scratch, routing));
  const Activations x = prepare_activations(params.gate_up_mode, *call.inputs[kX], scratch, *context.threads);
  Tensor hidden;
  hidden.rank = 2;
  hidden.sizes = {choices, features};
  hidden.set_contiguous_strides();
  hidden.data = scratch.take<float>(choices * features);
  float* outputs = scratch.take<float>(choices * call.inputs[kX]->size(1));
  Buffers buffers;
  buffers.stride = static_cast<int64_t>(array_bytes<float>(buffer_floats(call)) / sizeof(float));
  buffers.rows = scratch.take<float>(buffers.stride * context.threads->num_threads());
  compute_hidden(call, routing, x, hidden.as<float>(), buffers, *context.threads);
  const Activations rows = prepare_activations(params.down_mode, hidden, scratch, *context.threads);
  compute_outputs(call, routing, rows, outputs, buffers, *context.threads);
  combine(call, routing, outputs, *context.threads);
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.moe_experts", .check = check_moe, .scratch_bytes = moe_scratch, .run = run_moe);

}  // namespace mote
