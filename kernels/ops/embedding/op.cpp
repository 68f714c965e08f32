// mote.embedding: rows of a dense or quantised table.
#include <atomic>

#include "kernels/formats.h"
#include "kernels/kernel.h"
#include "kernels/ops/linear/kernels.h"
#include "kernels/ops/linear/matrix.h"
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"
#include "kernels/support/float_bits.h"
#include "kernels/support/rows.h"

namespace mote {

namespace {

struct EmbeddingParams {
  const RowKernels* rows;  // nullptr unless rows are stored rotated
};

Status check_embedding(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 2, 1));
  const Tensor& ids = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dtype(ids, "ids", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(ids, "ids", 0, kMaxRank - 1));
  MOTE_RETURN_IF_ERROR(expect_weight(weight, "weight", 2));
  MOTE_ASSIGN(const int64_t rotated, integer_or(call, "rotated", 0, 0, 1));
  MOTE_REQUIRE(rotated == 0 || weight.size(1) % 16 == 0, Code::kInvalidProgram,
               "rotated = 1: weight has %lld columns: must be a multiple of 16",
               static_cast<long long>(weight.size(1)));
  EmbeddingParams params{};
  if (rotated == 1) { MOTE_ASSIGN(params.rows, select_functions<RowKernels>(WeightKind::of(weight), 1)); }
  call.make_params<EmbeddingParams>() = params;
  Sizes sizes = Sizes::of(ids);
  sizes.push(weight.size(1));
  return expect_output(call, 0, DType::kFloat32, sizes.span());
}

Status run_embedding(const Call& call, KernelContext& context) {
  const Tensor& ids = *call.inputs[0];
  const Matrix table = matrix_of(*call.inputs[1], 0);
  const Sizes sizes = Sizes::of(ids);
  const Walk walk(ids, sizes.span());
  const int64_t count = ids.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    int64_t buffer = 0;
    const int64_t id = *walk.read(ids.as<int64_t>(), i, 1, &buffer);
    MOTE_REQUIRE(id >= 0 && id < table.rows, Code::kInvalidArgument, "token id %lld at %lld: must be 0..%lld",
                 static_cast<long long>(id), static_cast<long long>(i), static_cast<long long>(table.rows - 1));
  }
  float* y = call.outputs[0]->as<float>();
  const RowKernels* kernels = call.get_params<EmbeddingParams>().rows;
  context.threads->parallel_for(count, row_grain(table.columns), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t buffer = 0;
      const int64_t id = *walk.read(ids.as<int64_t>(), i, 1, &buffer);
      float* row = y + i * table.columns;
      if (table.bits != 0) {
        dequantise_row(table, id, row);
      } else {
        to_float32(table.data + id * table.columns * dtype_bytes(table.dtype), table.dtype, table.columns, row);
      }
      if (kernels != nullptr) kernels->rotate_back(row, table.columns);
    }
  });
  return Status();
}

OutputAxis embedding_axis(const SymbolicCall& call) {
  return call.same_for_all_tokens(1) ? OutputAxis(call.axis(0)) : kMixesTokens;
}

// Counts the rows that are read, not the whole table.
Cost embedding_cost(const Call& call, const KernelContext&) {
  const Tensor& table = *call.inputs[1];
  const int64_t rows = call.inputs[0]->num_elements();
  return {tensor_bytes(*call.inputs[0]) + tensor_bytes(*call.outputs[0]) +
              rows * tensor_bytes(table) / std::max<int64_t>(1, table.size(0)),
          0};
}

}  // namespace

MOTE_REGISTER_OP(.name = "mote.embedding", .check = check_embedding, .run = run_embedding, .token_axis = embedding_axis,
                 .cost = embedding_cost);

}  // namespace mote
