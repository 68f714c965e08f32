#include "kernels/ops/linear/matrix.h"

#include <cstring>

#include "kernels/support/float_bits.h"

namespace mote {

namespace {

// Row `row` of 16: of tiles at `tile`, of the span that begins with float16 scales.
struct TileRow {
  const TileLayout& layout;
  const std::byte* tile;
  const std::byte* span;
  int64_t row;

  float half(int64_t index) const {
    uint16_t bits;
    std::memcpy(&bits, span + (kTileRows * index + row) * dtype_bytes(DType::kFloat16), sizeof(bits));
    return float16_to_float32(bits);
  }
  int small(int64_t at, int64_t group) const { return static_cast<int8_t>(tile[at + kTileRows * group + row]); }
  int value(int64_t column) const {
    const int code = code_at(tile, layout.bits, layout.tile_columns(), row, column);
    return layout.scales.codebook == nullptr ? code - layout.code_offset() : layout.scales.codebook[code];
  }
};

// What the codes of one group stand for. first: its first column in its tile
void dequantise_group(const TileRow& at, int64_t first, float row_scale, float* y) {
  const TileLayout& layout = at.layout;
  const int64_t group = first / layout.group_size;
  const int multiplier = layout.has_multipliers() ? at.small(layout.multipliers_at(), group) : 1;
  if (layout.scales.columns == 0) {
    for (int64_t k = 0; k < layout.group_size; ++k) {
      y[k] = row_scale * static_cast<float>(multiplier * at.value(first + k));
    }
    return;
  }
  const int64_t index = layout.has_multipliers() ? 0 : group, minimums = layout.scales_per_span();
  const float half = at.half(index), scale = half * static_cast<float>(multiplier);
  const float number = layout.has_lows() ? static_cast<float>(at.small(layout.lows_at(), group)) : 1.0f;
  const bool has_minimum = layout.scales.offset == WeightOffset::kMinimum, has_low = layout.has_lows() || has_minimum;
  const float low = has_low ? (has_minimum ? at.half(minimums + index) : half) * number : 0.0f;
  for (int64_t k = 0; k < layout.group_size; ++k) {
    const float product = scale * static_cast<float>(at.value(first + k)), value = has_low ? product + low : product;
    y[k] = layout.scales.of_rows ? row_scale * value : value;
  }
}

}  // namespace

void dequantise_row(const Matrix& matrix, int64_t row, float* y) {
  const TileLayout layout = matrix.layout();
  const std::byte* block = matrix.data + row / kTileRows * matrix.block_bytes();
  float row_scale = 1;
  if (layout.scales.of_rows) {
    const int64_t at = layout.row_scales_at(matrix.columns) + row % kTileRows * dtype_bytes(DType::kFloat32);
    std::memcpy(&row_scale, block + at, sizeof(row_scale));
  }
  for (int64_t column = 0; column < matrix.columns; column += layout.group_size) {
    const int64_t in_span = column % layout.span_columns();
    const std::byte* span = block + column / layout.span_columns() * layout.span_bytes();
    const std::byte* tile = span + layout.tiles_at() + in_span / layout.tile_columns() * layout.tile_bytes();
    const TileRow at = {layout, tile, span, row % kTileRows};
    dequantise_group(at, column % layout.tile_columns(), row_scale, y + column);
  }
}

}  // namespace mote
