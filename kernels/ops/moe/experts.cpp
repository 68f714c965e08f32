#include "kernels/ops/moe/experts.h"

#include <algorithm>

#include "kernels/ops/moe/parts.h"
#include "kernels/support/contract.h"
#include "kernels/support/math.h"
#include "kernels/support/rows.h"

namespace mote {

namespace {

// One thread's results of a strip of rows, and the kernels' own memory.
size_t thread_bytes(const Call& call) {
  const MoeParams& params = call.get_params<MoeParams>();
  const size_t own = std::max(params.gate_up.scratch_bytes(matrix_of(*call.inputs[kGateUp], 0)),
                              params.down.scratch_bytes(matrix_of(*call.inputs[kDown], 0)));
  return expert_thread_bytes(own);
}

// The weight rows of 16 features of the hidden layer, and where their ups begin in a row of products.
struct GateStreams {
  Streams streams;
  int64_t up = 0;
};

GateStreams gate_streams(GateLayout layout, const Matrix& matrix, int64_t features, int64_t n) {
  GateStreams parts;
  if (layout == GateLayout::kInterleaved) {
    // Rows 2 n .. 2 n + 31, even ones gate; the second block may lie past the end.
    for (int64_t row = 2 * n; row < std::min(matrix.rows, 2 * n + 2 * kTileRows); row += kTileRows)
      parts.streams.add(row);
    return parts;
  }
  parts.streams.add(n);
  if (layout == GateLayout::kSingle) return parts;
  const int64_t shift = matrix.bits == 0 ? 0 : (features + n) % kTileRows;
  const int64_t last = features + std::min(n + kTileRows, features);
  parts.up = kTileRows + shift;
  for (int64_t row = features + n - shift; row < last; row += kTileRows) parts.streams.add(row);
  return parts;
}

void finish_hidden(const MoeParams& params, const float* row, int64_t up, const float* bias, int64_t features,
                   int64_t n, int64_t width, float* to) {
  float gates[kTileRows], ups[kTileRows];
  const bool interleaved = params.layout == GateLayout::kInterleaved, single = params.layout == GateLayout::kSingle;
  for (int64_t r = 0; r < width; ++r) {
    gates[r] = row[interleaved ? 2 * r : r];
    ups[r] = single ? 1.0f : row[interleaved ? 2 * r + 1 : up + r];
    if (bias == nullptr) continue;
    gates[r] += bias[interleaved ? 2 * (n + r) : n + r];
    if (!single) ups[r] += bias[interleaved ? 2 * (n + r) + 1 : features + n + r];
  }
  if (params.limit != 0 && !single) {
    for (int64_t r = 0; r < width; ++r) {
      gates[r] = std::min(gates[r], params.limit);
      ups[r] = std::clamp(ups[r], -params.limit, params.limit);
    }
  }
  if (params.up_softcap != 0 && !single) {
    for (int64_t r = 0; r < width; ++r) ups[r] = math::tanh(ups[r] / params.up_softcap) * params.up_softcap;
  }
  if (params.gate_softcap != 0) {
    for (int64_t r = 0; r < width; ++r) {
      const float capped = math::tanh(gates[r] / params.gate_softcap) * params.gate_softcap;
      to[r] = capped * math::sigmoid(gates[r]) * ups[r];
    }
  } else if (params.alpha != 0 && !single) {
    for (int64_t r = 0; r < width; ++r) to[r] = (ups[r] + 1.0f) * gates[r] * math::sigmoid(gates[r] * params.alpha);
  } else {
    params.gate_up.few.x.rows->gate(static_cast<int>(params.function), gates, nullptr, single ? nullptr : ups, nullptr,
                                    width, to);
  }
}

// Features [16 block, ...) of the hidden layer for some choices of an expert.
void hidden_block(const MoeParams& params, const Matrix& matrix, const float* bias, const Activations& x,
                  const ExpertPart& part, int64_t block, float* hidden, int64_t features,
                  const ExpertBuffers& buffers) {
  const int64_t n = block * kTileRows, width = std::min<int64_t>(kTileRows, features - n);
  const GateStreams parts = gate_streams(params.layout, matrix, features, n);
  float* results = buffers.results(part.thread);
  multiply_streams(params.gate_up.of(part.count), matrix, parts.streams, x, part.first_block, part.num_blocks, results,
                   kExpertWide, buffers.scratch(part.thread));
  for (int64_t i = 0; i < part.count; ++i) {
    finish_hidden(params, results + i * kExpertWide, parts.up, bias, features, n, width,
                  hidden + (part.first + i) * features + n);
  }
}

const float* expert_bias(const Tensor* bias, int64_t expert) {
  return bias == nullptr ? nullptr : bias->as<float>() + expert * bias->size(1);
}

void compute_hidden(const Call& call, const Routing& routing, const Activations& x, float* hidden,
                    const ExpertBuffers& buffers, ThreadPool& threads) {
  const MoeParams& params = call.get_params<MoeParams>();
  const int64_t features = call.inputs[kDown]->size(2);
  for_each_expert_strip(routing, features, kTileRows, x.width, threads, [&](const ExpertPart& part, int64_t block) {
    hidden_block(params, matrix_of(*call.inputs[kGateUp], part.expert),
                 expert_bias(optional_input(call, kGateUpBias), part.expert), x, part, block, hidden, features,
                 buffers);
  });
}

void compute_outputs(const Call& call, const Routing& routing, const Activations& hidden, float* outputs,
                     const ExpertBuffers& buffers, ThreadPool& threads) {
  const MoeParams& params = call.get_params<MoeParams>();
  const int64_t width = call.inputs[kX]->size(1);
  for_each_expert_strip(routing, width, kTileRows, hidden.width, threads, [&](const ExpertPart& part, int64_t block) {
    const float* bias = expert_bias(optional_input(call, kDownBias), part.expert);
    const int64_t n = block * kTileRows, rows = std::min<int64_t>(kTileRows, width - n);
    float* results = buffers.results(part.thread);
    Streams streams;
    streams.add(n);
    multiply_streams(params.down.of(part.count), matrix_of(*call.inputs[kDown], part.expert), streams, hidden,
                     part.first_block, part.num_blocks, results, kExpertWide, buffers.scratch(part.thread));
    for (int64_t i = 0; i < part.count; ++i) {
      params.down.few.x.rows->finish(results + i * kExpertWide, bias == nullptr ? nullptr : bias + n, nullptr, rows,
                                     outputs + (part.first + i) * width + n);
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

}  // namespace

Result<ExpertProducts> select_expert_products(InputRounding rounding, const Tensor& weight, int64_t choices,
                                              PackedWeights* packed) {
  ExpertProducts products;
  MOTE_ASSIGN(products.few, select_product(rounding, weight, kFewTokens, packed));
  const int64_t each = choices / std::max<int64_t>(1, weight.size(0));
  MOTE_ASSIGN(products.many,
              select_product(rounding, weight, std::clamp<int64_t>(each, kFewTokens + 1, kTokensAtOnce), packed));
  return products;
}

size_t moe_scratch_bytes(const Call& call, int num_threads) {
  const MoeParams& params = call.get_params<MoeParams>();
  const int64_t width = call.inputs[kX]->size(1), experts = call.inputs[kGateUp]->size(0);
  const int64_t choices = call.inputs[kIndices]->num_elements(), features = call.inputs[kDown]->size(2);
  const int64_t blocks = most_blocks(choices, experts);
  const auto rows = [&](const ExpertProducts& products, size_t weight) {
    return activations_bytes(products.many.x, matrix_of(*call.inputs[weight], 0), choices, blocks, num_threads);
  };
  return routing_bytes(choices, experts) + rows(params.gate_up, kGateUp) + array_bytes<float>(choices * features) +
         rows(params.down, kDown) + array_bytes<float>(choices * width) +
         static_cast<size_t>(num_threads) * thread_bytes(call);
}

Status run_moe(const Call& call, KernelContext& context) {
  const MoeParams& params = call.get_params<MoeParams>();
  const int64_t choices = call.inputs[kIndices]->num_elements(), features = call.inputs[kDown]->size(2);
  Scratch scratch(context.scratch);
  Routing routing;
  MOTE_RETURN_IF_ERROR(route(*call.inputs[kIndices], call.inputs[kGateUp]->size(0), scratch, routing));
  if (context.reads_ahead) {
    read_ahead(*call.inputs[kGateUp], routing);
    read_ahead(*call.inputs[kDown], routing);
  }
  const RowOrder token_rows = routing.token_rows(), choice_rows = routing.choice_rows();
  const Activations x =
      prepare_activations(params.gate_up.many.x, *call.inputs[kX], FusedNorm(), matrix_of(*call.inputs[kGateUp], 0),
                          &token_rows, scratch, *context.threads);
  Tensor hidden;
  hidden.rank = 2;
  hidden.sizes = {choices, features};
  hidden.set_contiguous_strides();
  hidden.data = scratch.take<float>(choices * features);
  float* outputs = scratch.take<float>(choices * call.inputs[kX]->size(1));
  ExpertBuffers buffers;
  buffers.stride = static_cast<int64_t>(thread_bytes(call));
  buffers.bytes = scratch.take<std::byte>(buffers.stride * context.threads->num_threads());
  compute_hidden(call, routing, x, hidden.as<float>(), buffers, *context.threads);
  const Activations rows =
      prepare_activations(params.down.many.x, hidden, FusedNorm(), matrix_of(*call.inputs[kDown], 0), &choice_rows,
                          scratch, *context.threads);
  compute_outputs(call, routing, rows, outputs, buffers, *context.threads);
  combine(call, routing, outputs, *context.threads);
  return Status();
}

}  // namespace mote
