// bmm: a [.., M, K] by b [.., K, N], any strides. Each output sums blocks of 128 k in ascending order, and within a
// block k in ascending order with fused products, so a row depends neither on the others nor on threads or layout.
#include <algorithm>

#include "kernels/kernel.h"
#include "kernels/ops/matmul/panel.h"
#include "kernels/support/contract.h"
#include "kernels/support/cost.h"

namespace mote {

namespace {

constexpr int64_t kColumns = 16;             // columns of b in a panel
constexpr int64_t kDepth = 128;              // rows of b in a panel
constexpr int64_t kRows = 64;                // rows of a that share a panel
constexpr int64_t kGrainProducts = 1 << 17;  // worth handing to a thread: about 10 us of work

struct Matrix {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;
};

// Matrix number `batch` of the leading dimensions, counted row-major.
Matrix matrix_of(const Tensor& tensor, int64_t batch) {
  int64_t offset = 0;
  for (int dim = tensor.rank - 3; dim >= 0; --dim) {
    offset += batch % tensor.size(dim) * tensor.stride(dim);
    batch /= tensor.size(dim);
  }
  return {tensor.as<float>() + offset, tensor.stride(-2), tensor.stride(-1)};
}

// panel [depth, 16] = b[k.., n..], columns beyond `columns` 0.
void pack(const Matrix& b, int64_t k, int64_t depth, int64_t n, int64_t columns, float* panel) {
  const float* from = b.data + k * b.row_stride + n * b.column_stride;
  for (int64_t row = 0; row < depth; ++row) {
    float* to = panel + row * kColumns;
    for (int64_t column = 0; column < columns; ++column)
      to[column] = from[row * b.row_stride + column * b.column_stride];
    std::fill(to + columns, to + kColumns, 0.0f);
  }
}

struct Params {
  const PanelFunctions* functions;
};

struct Shape {
  int64_t m, k, n;
};

// Rows [row, row + rows) and the 16 columns from `column` of one product.
void multiply_block(const PanelFunctions& functions, const Matrix& a, const Matrix& b, const Shape& shape, int64_t row,
                    int64_t column, float* y) {
  float panel[kDepth * kColumns];
  float sums[kRows * kColumns];
  const int64_t rows = std::min(kRows, shape.m - row), columns = std::min(kColumns, shape.n - column);
  for (int64_t r = 0; r < rows; ++r) std::fill_n(y + (row + r) * shape.n + column, columns, 0.0f);
  for (int64_t k = 0; k < shape.k; k += kDepth) {
    const int64_t depth = std::min(kDepth, shape.k - k);
    pack(b, k, depth, column, columns, panel);
    const float* from = a.data + row * a.row_stride + k * a.column_stride;
    functions.multiply(from, a.row_stride, a.column_stride, rows, panel, depth, sums);
    for (int64_t r = 0; r < rows; ++r) {
      float* to = y + (row + r) * shape.n + column;
      for (int64_t i = 0; i < columns; ++i) to[i] += sums[r * kColumns + i];
    }
  }
}

Status check(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 2, 1));
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dtype(a, "input 0", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_dtype(b, "input 1", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(a, "input 0", 2, kMaxRank));
  Sizes b_sizes = Sizes::of(a), sizes = Sizes::of(a);
  MOTE_RETURN_IF_ERROR(expect_rank(b, "input 1", a.rank, a.rank));
  b_sizes[-2] = a.size(-1);
  b_sizes[-1] = b.size(-1);
  MOTE_RETURN_IF_ERROR(expect_sizes(b, "input 1", b_sizes.span()));
  sizes[-1] = b.size(-1);
  MOTE_ASSIGN(call.make_params<Params>().functions,
              select_functions<PanelFunctions>({}, std::max<int64_t>(1, a.size(-2))));
  return expect_output(call, 0, DType::kFloat32, sizes.span());
}

Status run(const Call& call, KernelContext& context) {
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  const Tensor& y = *call.outputs[0];
  if (y.num_elements() == 0) return Status();
  const Shape shape = {a.size(-2), a.size(-1), b.size(-1)};
  const int64_t row_blocks = (shape.m + kRows - 1) / kRows, column_blocks = (shape.n + kColumns - 1) / kColumns;
  const int64_t units = y.num_elements() / (shape.m * shape.n) * row_blocks * column_blocks;
  const PanelFunctions& functions = *call.get_params<Params>().functions;
  const int64_t unit_products = std::min(kRows, shape.m) * kColumns * std::max<int64_t>(shape.k, 1);
  const int64_t grain = std::max<int64_t>(1, kGrainProducts / unit_products);
  context.threads->parallel_for(units, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t column = unit % column_blocks * kColumns;
      const int64_t row = unit / column_blocks % row_blocks * kRows;
      const int64_t batch = unit / column_blocks / row_blocks;
      multiply_block(functions, matrix_of(a, batch), matrix_of(b, batch), shape, row, column,
                     y.as<float>() + batch * shape.m * shape.n);
    }
  });
  return Status();
}

// Tokens may be rows of a, columns of b, or matrices of the leading dimensions.
OutputAxis bmm_axis(const SymbolicCall& call) {
  const TokenAxis a = call.axis(0), b = call.axis(1);
  const int rank = call.rank(0);
  if (a.exists() && b.exists()) return a == b && a.dim < rank - 2 ? OutputAxis(a) : kMixesTokens;
  if (a.exists()) return a.dim == rank - 2 ? OutputAxis(a) : kMixesTokens;
  if (b.exists()) return b.dim == rank - 1 ? OutputAxis(b) : kMixesTokens;
  return a;
}

Cost bmm_cost(const Call& call, const KernelContext&) {
  return {operand_bytes(call), call.outputs[0]->num_elements() * call.inputs[0]->size(-1)};
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.bmm", .check = check, .run = run, .token_axis = bmm_axis, .cost = bmm_cost);

}  // namespace mote
