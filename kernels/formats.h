// Formats of quantised weights: tiles of 16 rows x one group, the codes in planes, then multipliers, and
// behind the tiles of 16 rows the scales of the rows (docs/file-format.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/tensor.h"

namespace mote {

struct WeightFormat {
  int bits;
  int code_min;  // 1 bit: the codes are -1 and 1 only
  int code_max;
  int max_multiplier;             // in magnitude; of 1 to 4 bits such that multiplier * code is a signed byte
  std::array<int, 3> plane_bits;  // widest first; 0: no further plane
};

// Row for row FORMATS in llm_export/program/formats.py; a test compares them.
inline constexpr std::array<WeightFormat, 8> kWeightFormats = {{
    {1, -1, 1, 127, {1, 0, 0}},
    {2, -2, 1, 63, {2, 0, 0}},
    {3, -4, 3, 31, {2, 1, 0}},
    {4, -8, 7, 15, {4, 0, 0}},
    {5, -16, 15, 127, {4, 1, 0}},
    {6, -32, 31, 127, {4, 2, 0}},
    {7, -64, 63, 127, {4, 2, 1}},
    {8, -128, 127, 127, {8, 0, 0}},
}};

constexpr bool is_weight_bits(int bits) { return bits >= 1 && bits <= static_cast<int>(kWeightFormats.size()); }

constexpr bool is_group_size(int64_t size) { return size == 32 || size == 64 || size == 128 || size == 256; }

// Most bits of codes that lie above a minimum, which are not negative: products read them as signed bytes.
inline constexpr int kMaxBitsAboveMinimum = 7;
inline constexpr int kCodebookBits = 4, kCodebookSize = 16;
// What products of unsigned with signed bytes add to what a codebook's codes stand for.
inline constexpr int kCodebookOffset = 128;

// bits: 1..8, here and below
constexpr const WeightFormat& weight_format(int bits) { return kWeightFormats[static_cast<size_t>(bits - 1)]; }

constexpr int64_t plane_bytes(int plane_bits, int64_t group_size) { return kTileRows * group_size * plane_bits / 8; }

// Bytes of the codes of a tile, after which its multipliers begin.
constexpr int64_t code_bytes(int bits, int64_t group_size) { return plane_bytes(bits, group_size); }

constexpr int64_t tile_bytes(int bits, int64_t group_size) {
  return code_bytes(bits, group_size) + kTileRows * dtype_bytes(DType::kInt8);
}

// 16 whole rows with multipliers of row scales: their tiles, then the scales.
constexpr int64_t block_bytes(int bits, int64_t group_size, int64_t groups) {
  return groups * tile_bytes(bits, group_size) + kTileRows * dtype_bytes(DType::kFloat32);
}

// Where the parts of 16 rows of tiles of any scales lie: spans, each of float16 scales, then minimums, and the tiles
// that share them, so that memory is read in its order; then the scales of the rows. Groups of 16 columns lie two to a
// tile.
struct TileLayout {
  int bits = 0;
  int64_t group_size = 0;
  TileScales scales;

  constexpr int64_t tile_columns() const { return group_size < 32 ? 32 : group_size; }
  constexpr int64_t groups_per_tile() const { return tile_columns() / group_size; }
  constexpr bool has_multipliers() const { return scales.columns == 0 || scales.columns > group_size; }
  // Whether a group has a byte of its own for what is added.
  constexpr bool has_lows() const {
    return scales.offset == WeightOffset::kZero || (scales.offset == WeightOffset::kMinimum && has_multipliers());
  }
  constexpr int64_t multipliers_at() const { return code_bytes(bits, tile_columns()); }
  constexpr int64_t lows_at() const {
    return multipliers_at() + (has_multipliers() ? kTileRows * groups_per_tile() : 0);
  }
  constexpr int64_t tile_bytes() const { return lows_at() + (has_lows() ? kTileRows * groups_per_tile() : 0); }

  constexpr int64_t span_columns() const { return scales.columns > tile_columns() ? scales.columns : tile_columns(); }
  constexpr int64_t tiles_per_span() const { return span_columns() / tile_columns(); }
  constexpr int64_t scales_per_span() const { return scales.columns == 0 ? 0 : span_columns() / scales.columns; }
  constexpr int64_t scale_bytes() const { return kTileRows * dtype_bytes(DType::kFloat16) * scales_per_span(); }
  constexpr int64_t tiles_at() const { return scale_bytes() * (scales.offset == WeightOffset::kMinimum ? 2 : 1); }
  constexpr int64_t span_bytes() const { return tiles_at() + tiles_per_span() * tile_bytes(); }
  constexpr int64_t row_scales_at(int64_t columns) const { return columns / span_columns() * span_bytes(); }
  constexpr int64_t block_bytes(int64_t columns) const {
    return row_scales_at(columns) + (scales.of_rows ? kTileRows * dtype_bytes(DType::kFloat32) : 0);
  }
  // What is subtracted from code_at to get what a code stands for, codebooks aside.
  constexpr int code_offset() const { return scales.offset == WeightOffset::kMinimum ? 0 : 1 << (bits - 1); }
};

// nullptr, or which of bits, group_size and scales is none that tiles have, and what they may be.
constexpr const char* tile_error(int64_t bits, int64_t group_size, const TileScales& scales) {
  if (!is_weight_bits(static_cast<int>(bits))) return "bits: must be 0..8";
  if (scales.columns == 0) {
    if (!is_group_size(group_size)) return "group_size: must be 32, 64, 128 or 256";
    const bool plain = scales.offset == WeightOffset::kNone && scales.of_rows && scales.codebook == nullptr;
    return plain ? nullptr : "scale_columns: must not be 0 with an offset, a codebook or without row_scales";
  }
  if (!is_group_size(group_size) && group_size != 16) return "group_size: must be 16, 32, 64, 128 or 256";
  if ((!is_group_size(scales.columns) && scales.columns != 16) || scales.columns < group_size) {
    return "scale_columns: must be 0, 16, 32, 64, 128 or 256, and at least group_size";
  }
  if (scales.offset > WeightOffset::kZero) return "offset: must be none, minimum or zero";
  if (scales.offset == WeightOffset::kMinimum && bits > kMaxBitsAboveMinimum) return "bits: must be 1..7 with minimums";
  if (scales.offset == WeightOffset::kZero && scales.columns != group_size) {
    return "scale_columns: must be group_size with zero points";
  }
  if (scales.codebook != nullptr && (bits != kCodebookBits || scales.offset != WeightOffset::kNone)) {
    return "codebook: must be of 4 bits and without an offset";
  }
  if (bits == 1) return "bits: must be 2..8 with float16 scales";
  return nullptr;
}

// What `columns` of a weight must be a multiple of.
constexpr int64_t column_unit(int64_t group_size, const TileScales& scales) {
  return TileLayout{1, group_size, scales}.span_columns();
}

inline TileLayout layout_of(const Tensor& weight) { return {weight.bits, weight.group_size, weight.scales}; }

// A weight's last two dimensions as they are stored: rows of tiles are padded to a multiple of 16.
inline int64_t matrix_bytes(const Tensor& weight) {
  const int64_t rows = weight.size(-2), columns = weight.size(-1);
  if (weight.bits == 0) return rows * columns * dtype_bytes(weight.dtype);
  return (rows + kTileRows - 1) / kTileRows * layout_of(weight).block_bytes(columns);
}

// Whether multiplier * code is a signed byte, so that a row is a row of bytes with one scale.
constexpr bool products_fit_bytes(int bits) { return bits <= 4; }
static_assert([] {
  for (const WeightFormat& f : kWeightFormats) {
    if (products_fit_bytes(f.bits) != (f.max_multiplier * -f.code_min <= 127)) return false;
  }
  return true;
}());

// What is subtracted from `code_at` to get the code.
constexpr int code_offset(int bits) { return -weight_format(bits).code_min; }

// Code + code_offset of one weight of a tile: the stored digits, doubled for 1 bit (0 or 2).
//   row: 0..15   column: 0..group_size - 1
inline uint8_t code_at(const std::byte* tile, int bits, int64_t group_size, int64_t row, int64_t column) {
  unsigned code = 0;
  int shift = 0;
  for (const int plane : weight_format(bits).plane_bits) {
    if (plane == 0) break;
    const int64_t columns_per_block = 32 / plane, in_block = column % columns_per_block;
    const auto byte = std::to_integer<unsigned>(tile[64 * (column / columns_per_block) + 4 * row + in_block % 4]);
    code |= (byte >> (plane * (in_block / 4)) & ((1u << plane) - 1)) << shift;
    shift += plane;
    tile += plane_bytes(plane, group_size);
  }
  return static_cast<uint8_t>(bits == 1 ? 2 * code : code);
}

// row: 0..15
inline int multiplier_at(const std::byte* tile, int bits, int64_t group_size, int64_t row) {
  return static_cast<int8_t>(tile[code_bytes(bits, group_size) + row]);
}

// code_at for columns 8 eighth .. 8 eighth + 7 of a tile of 4 bits: two codes a byte, the even column in the low
// nibble.
inline uint32_t eight_codes(const std::byte* tile, int64_t row, int64_t eighth) {
  uint32_t word;
  std::memcpy(&word, tile + 64 * eighth + 4 * row, sizeof(word));
  const auto pairs = [](uint32_t columns) {  // bytes of one code each, to two codes a byte
    const uint32_t joined = columns | columns >> 4;
    return (joined & 0xff) | (joined >> 8 & 0xff00);
  };
  return pairs(word & 0x0f0f0f0f) | pairs(word >> 4 & 0x0f0f0f0f) << 16;
}

}  // namespace mote
