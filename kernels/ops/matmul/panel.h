// The inner work of aten.bmm: rows of a by a panel of b.
#pragma once

#include <cstdint>
#include <string_view>

namespace mote {

struct PanelFunctions {
  static constexpr std::string_view kRole = "bmm";

  // sums [rows, 16] = a [rows, depth] by panel [depth, 16], each sum in ascending order of depth, products fused.
  void (*multiply)(const float* a, int64_t row_stride, int64_t column_stride, int64_t rows, const float* panel,
                   int64_t depth, float* sums);
};

}  // namespace mote
