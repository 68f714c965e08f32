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

// bits: 1..8, here and below
constexpr const WeightFormat& weight_format(int bits) { return kWeightFormats[static_cast<size_t>(bits - 1)]; }

constexpr int64_t plane_bytes(int plane_bits, int64_t group_size) { return kTileRows * group_size * plane_bits / 8; }

// Bytes of the codes of a tile, after which its multipliers begin.
constexpr int64_t code_bytes(int bits, int64_t group_size) { return plane_bytes(bits, group_size); }

constexpr int64_t tile_bytes(int bits, int64_t group_size) {
  return code_bytes(bits, group_size) + kTileRows * dtype_bytes(DType::kInt8);
}

// 16 whole rows: their tiles, then their scales.
constexpr int64_t block_bytes(int bits, int64_t group_size, int64_t groups) {
  return groups * tile_bytes(bits, group_size) + kTileRows * dtype_bytes(DType::kFloat32);
}

// A weight's last two dimensions as they are stored: rows of tiles are padded to a multiple of 16.
inline int64_t matrix_bytes(const Tensor& weight) {
  const int64_t rows = weight.size(-2), columns = weight.size(-1);
  if (weight.bits == 0) return rows * columns * dtype_bytes(weight.dtype);
  return (rows + kTileRows - 1) / kTileRows * block_bytes(weight.bits, weight.group_size, columns / weight.group_size);
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
