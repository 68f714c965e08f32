// Rows of a weight times rows of activations: the one place where weights are multiplied.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"
#include "kernels/ops/linear/activations.h"
#include "kernels/ops/linear/packed_weights.h"

namespace mote {

// The kernels of one weight for one range of tokens. Which of the products is present depends on the mode of x.
struct Product {
  ActivationForm x;
  const PackedWeight* packed = nullptr;  // if the kernel cannot read tiles
  const CodeProducts* codes = nullptr;
  const GroupProducts* groups = nullptr;
  const FloatProducts* floats = nullptr;
  const DenseProducts* dense = nullptr;

  size_t scratch_bytes(const Matrix& matrix) const {
    if (groups != nullptr) return groups->scratch_bytes(matrix.columns);
    return codes == nullptr ? 0 : codes->scratch_bytes(matrix.columns);
  }
};

// packed: keeps a weight whose kernel cannot read tiles. Errors: as select_kernel and PackedWeights::pack;
// kInvalidProgram if inputs of columns that are no multiple of 16 are rotated, or of 32 rounded in groups; kInternal if
// such a weight has no `packed`.
Result<Product> select_product(InputRounding rounding, const Tensor& weight, int64_t tokens, PackedWeights* packed);

// The first rows of up to kMaxStreams runs of 16 weight rows. Tiles: multiples of 16.
struct Streams {
  int64_t rows[kMaxStreams];
  int count = 0;
  int64_t ahead = 0;  // rows from each run to the one that is likely multiplied next in its place; 0: not known

  void add(int64_t row) { rows[count++] = row; }
};

// y[t][16 s + i] = row streams.rows[s] + i of the matrix times activations [blocks first_block .. first_block +
// num_blocks), t counted from the first of them, rows of y `stride` floats apart. Rows past the matrix' end are not
// written if the matrix is dense, and 0 if it is of tiles.
void multiply_streams(const Product& product, const Matrix& matrix, const Streams& streams, const Activations& x,
                      int64_t first_block, int64_t num_blocks, float* y, int64_t stride, std::byte* scratch);

}  // namespace mote
