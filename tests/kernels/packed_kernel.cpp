// codes_test_packed_4 and _8: kernels that pack weights and codes in the plainest layouts. Nothing but MOTE_KERNEL
// chooses them.
#include <cstring>

#include "kernels/formats.h"
#include "kernels/kernel.h"
#include "kernels/ops/linear/kernels.h"

namespace mote::test {
namespace {

constexpr int kRowsTogether = 3;

// [columns][16] multiplier * code, then the scales of the rows.
size_t block_bytes(int64_t group_size, int64_t groups) {
  return static_cast<size_t>(kTileRows * (group_size * groups * 2 + 4));
}

template <int kBits>
void pack(const std::byte* tiles, int64_t group_size, int64_t groups, std::byte* to) {
  for (int64_t k = 0; k < group_size * groups; ++k) {
    const std::byte* tile = tiles + k / group_size * tile_bytes(kBits, group_size);
    for (int64_t row = 0; row < kTileRows; ++row, to += 2) {
      const int multiplier = multiplier_at(tile, kBits, group_size, row);
      const int code = code_at(tile, kBits, group_size, row, k % group_size) - code_offset(kBits);
      const auto product = static_cast<int16_t>(multiplier * code);
      std::memcpy(to, &product, 2);
    }
  }
  std::memcpy(to, tiles + groups * tile_bytes(kBits, group_size), kTileRows * sizeof(float));
}

int64_t row_bytes(int64_t columns) { return columns; }

// [columns][rows], rows rounded up.
int64_t padded(int64_t rows) { return (rows + kRowsTogether - 1) / kRowsTogether * kRowsTogether; }
void pack_row(const int8_t* codes, int64_t columns, int row, int rows, int8_t* to) {
  for (int64_t k = 0; k < columns; ++k) to[k * padded(rows) + row] = codes[k];
}

void multiply_row(const std::byte* block, int64_t columns, const CodeBlock& x, int t, float* y) {
  uint32_t sums[kTileRows] = {};
  for (int64_t k = 0; k < columns; ++k) {
    const int code = x.codes[k * padded(x.count) + t] - x.zeros[t];
    for (int row = 0; row < kTileRows; ++row, block += 2) {
      int16_t product;
      std::memcpy(&product, block, 2);
      sums[row] += static_cast<uint32_t>(product * code);
    }
  }
  for (int row = 0; row < kTileRows; ++row) {
    float scale;
    std::memcpy(&scale, block + 4 * row, 4);
    y[row] = x.scales[t] * (scale * static_cast<float>(static_cast<int32_t>(sums[row])));
  }
}

void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte*) {
  for (int64_t b = 0; b < num_blocks; y += x[b].count * stride, ++b) {
    for (int t = 0; t < x[b].count; ++t) {
      for (int s = 0; s < w.count; ++s) multiply_row(w.blocks[s], w.columns(), x[b], t, y + t * stride + kTileRows * s);
    }
  }
}

size_t no_scratch(int64_t) { return 0; }

constexpr CodePacking kCodes = {kRowsTogether, row_bytes, pack_row};

template <int kBits>
constexpr WeightPacking kWeights = {"test", block_bytes, pack<kBits>};
template <int kBits>
constexpr CodeProducts kProducts = {CodeLayout::kQuads, no_scratch, multiply, &kWeights<kBits>, &kCodes};
template <int kBits>
bool takes(const WeightKind& kind) {
  return kind.bits == kBits && kind.scales.columns == 0;
}

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_test_packed_4", .role = CodeProducts::kRole, .rank = -100, .takes = takes<4>,
                     .functions = &kProducts<4>);
MOTE_REGISTER_KERNEL(.name = "codes_test_packed_8", .role = CodeProducts::kRole, .rank = -100, .takes = takes<8>,
                     .functions = &kProducts<8>);

}  // namespace mote::test
