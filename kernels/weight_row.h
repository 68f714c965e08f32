// One row of a weight in tiles whose multipliers are of the row's scale, for who stores it otherwise.
#pragma once

#include "kernels/formats.h"

namespace mote {

struct WeightRow {
  const std::byte* block;
  int64_t in_block;  // 0..15
  int64_t groups;
  int bits;
  int64_t group_size;

  WeightRow(const Tensor& weight, int64_t row)
      : in_block(row % kTileRows),
        groups(weight.size(1) / weight.group_size),
        bits(weight.bits),
        group_size(weight.group_size) {
    block = weight.as<const std::byte>() + row / kTileRows * block_bytes(bits, group_size, groups);
  }

  const std::byte* tile(int64_t group) const { return block + group * tile_bytes(bits, group_size); }
  int multiplier(int64_t group) const { return multiplier_at(tile(group), bits, group_size, in_block); }
  float scale() const {
    float value;
    std::memcpy(&value, tile(groups) + in_block * dtype_bytes(DType::kFloat32), sizeof(value));
    return value;
  }
  // Whether it is positive and a normal number: smaller ones are nothing, for libraries that take no others.
  bool has_scale() const { return scale() >= 0x1p-126f; }
};

}  // namespace mote
