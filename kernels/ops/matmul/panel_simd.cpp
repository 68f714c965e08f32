#include "kernels/ops/matmul/panel.h"

#include "kernels/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

template <int Rows>
MOTE_INLINE void multiply_rows(const float* a, int64_t row_stride, int64_t column_stride, const float* panel,
                               int64_t depth, float* sums) {
  F32x16 sum[Rows];
  for (F32x16& row : sum) row = splat(0.0f);
  for (int64_t k = 0; k < depth; ++k) {
    const F32x16 column = load_f32(panel + 16 * k);
    for (int row = 0; row < Rows; ++row)
      sum[row] = fma(splat(a[row * row_stride + k * column_stride]), column, sum[row]);
  }
  for (int row = 0; row < Rows; ++row) store_f32(sums + 16 * row, sum[row]);
}

void multiply(const float* a, int64_t row_stride, int64_t column_stride, int64_t rows, const float* panel,
              int64_t depth, float* sums) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    multiply_rows<4>(a + row * row_stride, row_stride, column_stride, panel, depth, sums + 16 * row);
  for (; row < rows; ++row)
    multiply_rows<1>(a + row * row_stride, row_stride, column_stride, panel, depth, sums + 16 * row);
}

constexpr PanelFunctions kFunctions = {multiply};

MOTE_REGISTER_KERNEL(.name = "bmm_panel_" MOTE_ISA_NAME, .role = PanelFunctions::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
