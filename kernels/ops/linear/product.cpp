#include "kernels/ops/linear/product.h"

#include <algorithm>

#include "kernels/ops/linear/trials.h"

namespace mote {

Result<Product> select_product(InputRounding rounding, const Tensor& weight, int64_t tokens, PackedWeights* packed) {
  const WeightKind kind = WeightKind::of(weight);
  Product product;
  product.x.mode = activation_mode(rounding, weight);
  const int64_t columns = weight.size(-1);
  MOTE_REQUIRE(rounding != InputRounding::kRotatedInt8 || columns % 16 == 0, Code::kInvalidProgram,
               "activations = rotated_int8: a weight has %lld columns: must be a multiple of 16",
               static_cast<long long>(columns));
  product.x.in_groups = rounding == InputRounding::kGroupedInt8;
  MOTE_REQUIRE(!product.x.in_groups || columns % kInputGroup == 0, Code::kInvalidProgram,
               "activations = grouped_int8: a weight has %lld columns: must be a multiple of 32",
               static_cast<long long>(columns));
  product.x.is_rotated = rounding == InputRounding::kRotatedInt8;
  MOTE_ASSIGN(product.x.rows, select_functions<RowKernels>(kind, tokens));
  const Trial trial = product_trial(weight, product.x.mode, tokens);
  switch (product.x.mode) {
    case ActivationMode::kCodes: {
      MOTE_ASSIGN(product.codes, select_functions<CodeProducts>(kind, tokens, &trial));
      product.x.layout = product.codes->layout;
      product.x.packing = product.codes->code_packing;
      if (product.codes->weight_packing == nullptr) break;
      MOTE_REQUIRE(packed != nullptr, Code::kInternal, "the kernel packs weights, and the call has no place for them");
      MOTE_ASSIGN(product.packed, packed->pack(weight, *product.codes->weight_packing));
      break;
    }
    case ActivationMode::kGroups: {
      MOTE_ASSIGN(product.groups, select_functions<GroupProducts>(kind, tokens, &trial));
      break;
    }
    case ActivationMode::kFloats: {
      MOTE_ASSIGN(product.floats, select_functions<FloatProducts>(kind, tokens, &trial));
      break;
    }
    default: {
      MOTE_ASSIGN(product.dense, select_functions<DenseProducts>(kind, tokens));
      break;
    }
  }
  return product;
}

void multiply_streams(const Product& product, const Matrix& matrix, const Streams& streams, const Activations& x,
                      int64_t first_block, int64_t num_blocks, float* y, int64_t stride, std::byte* scratch) {
  if (matrix.bits == 0) {
    const int64_t row_bytes = matrix.columns * dtype_bytes(matrix.dtype);
    const int64_t first = x.first_row(first_block), tokens = x.first_row(first_block + num_blocks) - first;
    for (int s = 0; s < streams.count; ++s) {
      const int64_t row = streams.rows[s], count = std::min<int64_t>(kTileRows, matrix.rows - row);
      const DenseRows rows = {matrix.data + row * row_bytes, matrix.dtype, row_bytes, count, matrix.columns};
      product.dense->multiply(rows, x.values + first * x.width, x.width, tokens, y + kTileRows * s, stride);
    }
    return;
  }
  TileBlocks blocks;
  blocks.count = streams.count;
  blocks.bits = matrix.bits;
  blocks.group_size = matrix.group_size;
  blocks.scales = matrix.scales;
  blocks.groups = matrix.columns / matrix.group_size;
  for (int s = 0; s < streams.count; ++s) {
    const std::byte* tiles = matrix.data + streams.rows[s] / kTileRows * matrix.block_bytes();
    blocks.blocks[s] = product.packed == nullptr ? tiles : product.packed->block_of(tiles);
  }
  blocks.ahead = streams.ahead / kTileRows * matrix.block_bytes();
  if (product.groups != nullptr) {
    product.groups->multiply(blocks, x.group_blocks + first_block, num_blocks, y, stride, scratch);
  } else if (product.codes != nullptr) {
    product.codes->multiply(blocks, x.code_blocks + first_block, num_blocks, y, stride, scratch);
  } else {
    product.floats->multiply(blocks, x.float_blocks + first_block, num_blocks, y, stride);
  }
}

}  // namespace mote
