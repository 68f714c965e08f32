// mote.linear and mote.gated_linear: threads split the output's columns in blocks of 16.
#include "kernels/contract.h"
#include "kernels/gate.h"
#include "kernels/linear/products.h"
#include "kernels/rows.h"

namespace mote {

namespace {

struct LinearParams {
  ActivationMode mode;
  Gate gate;
};

size_t linear_scratch(const Call& call, int num_threads) {
  const Tensor& x = *call.inputs[0];
  const Matrix matrix = matrix_of(*call.inputs[1], 0);
  return activations_bytes(call.get_params<LinearParams>().mode, num_rows(x), row_length(x)) +
         static_cast<size_t>(num_threads) * array_bytes<float>(product_buffer(matrix));
}

Status check_common(Call& call) {
  const Tensor& x = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "x", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "x", 1, kMaxRank));
  MOTE_RETURN_IF_ERROR(expect_weight(weight, "weight", 2));
  MOTE_REQUIRE(x.size(-1) == weight.size(1), Code::kInvalidProgram, "x has %lld columns: must be %lld, as the weight",
               static_cast<long long>(x.size(-1)), static_cast<long long>(weight.size(1)));
  if (const Tensor* bias = optional_input(call, 2)) {
    MOTE_RETURN_IF_ERROR(expect_parameter(*bias, "bias", {weight.size(0)}));
  }
  MOTE_ASSIGN(const int int8, choice(call, "activations", {"float", "int8"}));
  call.make_params<LinearParams>().mode = activation_mode(int8 == 1, weight);
  return Status();
}

Status check_linear(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 4, 1));
  MOTE_RETURN_IF_ERROR(check_common(call));
  Sizes sizes = Sizes::of(*call.inputs[0]);
  sizes[-1] = call.inputs[1]->size(0);
  if (const Tensor* residual = optional_input(call, 3)) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*residual, "residual", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*residual, "residual", sizes.span()));
  }
  return expect_output(call, 0, DType::kFloat32, sizes.span());
}

Status check_gated_linear(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 3, 1));
  MOTE_RETURN_IF_ERROR(check_common(call));
  LinearParams params = call.get_params<LinearParams>();
  MOTE_ASSIGN(const int gate, choice(call, "function", kGateNames));
  params.gate = static_cast<Gate>(gate);
  call.make_params<LinearParams>() = params;
  const int64_t rows = call.inputs[1]->size(0);
  MOTE_REQUIRE(rows % 2 == 0, Code::kInvalidProgram, "weight has %lld rows: must be even, gate then up",
               static_cast<long long>(rows));
  Sizes sizes = Sizes::of(*call.inputs[0]);
  sizes[-1] = rows / 2;
  return expect_output(call, 0, DType::kFloat32, sizes.span());
}

const float* data_or_null(const Tensor* tensor) { return tensor == nullptr ? nullptr : tensor->as<float>(); }

// body(block, first, count, buffer) for every block of 16 of `columns` output columns and every block of tokens.
template <typename Body>
void for_each_product(const Matrix& matrix, int64_t columns, const Activations& x, Scratch& scratch, ThreadPool& threads,
                      const Body& body) {
  const int64_t buffer_length = product_buffer(matrix);
  const auto stride = static_cast<int64_t>(array_bytes<float>(buffer_length) / sizeof(float));
  float* buffers = scratch.take<float>(stride * threads.num_threads());
  threads.parallel_for((columns + kTileRows - 1) / kTileRows, row_grain(x.count * matrix.columns),
                       [&](int64_t begin, int64_t end, int thread) {
                         for (int64_t block = begin; block < end; ++block) {
                           for (int64_t first = 0; first < x.count; first += kTokenBlock) {
                             body(block, first, std::min(kTokenBlock, x.count - first), buffers + thread * stride);
                           }
                         }
                       });
}

Status run_linear(const Call& call, KernelContext& context) {
  const Matrix matrix = matrix_of(*call.inputs[1], 0);
  const float* bias = data_or_null(optional_input(call, 2));
  const Tensor* residual = optional_input(call, 3);
  float* y = call.outputs[0]->as<float>();
  Scratch scratch(context.scratch);
  const Activations x =
      prepare_activations(call.get_params<LinearParams>().mode, *call.inputs[0], scratch, *context.threads);
  for_each_product(matrix, matrix.rows, x, scratch, *context.threads,
                   [&](int64_t block, int64_t first, int64_t count, float* buffer) {
    float out[kTokenBlock][kTileRows];
    block_products(matrix, x, block, nullptr, first, count, out, buffer);
    const int64_t n = block * kTileRows, width = std::min<int64_t>(kTileRows, matrix.rows - n);
    for (int64_t i = 0; i < count; ++i) {
      float* to = y + (first + i) * matrix.rows + n;
      for (int64_t r = 0; bias != nullptr && r < width; ++r) out[i][r] += bias[n + r];
      if (residual != nullptr) {
        const float* from = residual->as<float>() + row_offset(*residual, first + i) + n * residual->stride(-1);
        for (int64_t r = 0; r < width; ++r) out[i][r] += from[r * residual->stride(-1)];
      }
      std::copy(out[i], out[i] + width, to);
    }
  });
  return Status();
}

Status run_gated_linear(const Call& call, KernelContext& context) {
  const LinearParams params = call.get_params<LinearParams>();
  const Matrix matrix = matrix_of(*call.inputs[1], 0);
  const int64_t features = matrix.rows / 2;
  const float* bias = data_or_null(optional_input(call, 2));
  float* y = call.outputs[0]->as<float>();
  Scratch scratch(context.scratch);
  const Activations x = prepare_activations(params.mode, *call.inputs[0], scratch, *context.threads);
  for_each_product(matrix, features, x, scratch, *context.threads,
                   [&](int64_t block, int64_t first, int64_t count, float* buffer) {
    float gate[kTokenBlock][kTileRows], up[kTokenBlock][kTileRows];
    const int64_t n = block * kTileRows, width = std::min<int64_t>(kTileRows, features - n);
    block_products(matrix, x, block, nullptr, first, count, gate, buffer);
    row_products(matrix, x, features + n, nullptr, first, count, up, buffer);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t r = 0; bias != nullptr && r < width; ++r) gate[i][r] += bias[n + r];
      for (int64_t r = 0; bias != nullptr && r < width; ++r) up[i][r] += bias[features + n + r];
      float* to = y + (first + i) * features + n;
      for (int64_t r = 0; r < width; ++r) to[r] = apply(params.gate, gate[i][r]) * up[i][r];
    }
  });
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.linear", .check = check_linear, .scratch_bytes = linear_scratch, .run = run_linear);
MOTE_REGISTER_OP(.name = "mote.gated_linear", .check = check_gated_linear, .scratch_bytes = linear_scratch,
                 .run = run_gated_linear);

}  // namespace mote
