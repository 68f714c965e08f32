// Weights and activations as KleidiAI's kernels for int8 rows x int4 blocks read them (qai8dxp x qsi4c32p).
//
// A kernel is given ranges of columns so short that every sum is an integer below 2^24, which a float holds exactly. So
// its results are the integers of our own kernels, and the same steps follow, which gives the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kai/ukernels/matmul/matmul_clamp_f32_qai8dxp_qsi4c32p/kai_matmul_clamp_f32_qai8dxp_qsi4c32p_interface.h"
#include "kernels/formats.h"

namespace mote::kleidiai {

using MicroKernel = kai_matmul_clamp_f32_qai8dxp_qsi4c32p_ukernel;

inline constexpr int kBits = 4;
inline constexpr int64_t kRangeColumns = 1024;  // a whole number of groups
static_assert(kRangeColumns * 128 * weight_format(kBits).max_multiplier * -weight_format(kBits).code_min < int64_t{1}
                                                                                                               << 24);

// body(columns) for each range.
template <typename Body>
void for_each_range(int64_t columns, const Body& body) {
  for (int64_t first = 0; first < columns; first += kRangeColumns) body(std::min(kRangeColumns, columns - first));
}

inline size_t code_range_bytes(const MicroKernel& kernel, int rows, int64_t columns) {
  const size_t together = kernel.get_mr(), padded = (static_cast<size_t>(rows) + together - 1) / together * together;
  return kernel.get_lhs_packed_offset(padded, static_cast<size_t>(columns));
}
inline size_t weight_range_bytes(const MicroKernel& kernel, int64_t columns, int64_t group_size) {
  return kernel.get_rhs_packed_offset(kTileRows, static_cast<size_t>(columns), static_cast<size_t>(group_size));
}

// Follows the last range of a block of 16 rows of weights.
struct RowTrailer {
  float scales[kTileRows];
  uint32_t sums[kTileRows];  // of a row's multiplier * code, modulo 2^32
};

// Writes one range of 16 rows. codes: as PlainRange in packing.cpp; scales: the multipliers as bfloat16
using PackRange = void (*)(const MicroKernel& kernel, int64_t columns, int64_t group_size, const uint8_t* codes,
                           const uint16_t* scales, std::byte* to);

// WeightPacking and CodePacking (kernels/ops/linear/kernels.h) for a kernel.
size_t packed_block_bytes(const MicroKernel& kernel, int64_t group_size, int64_t groups);
void pack_block(const MicroKernel& kernel, PackRange pack_range, const std::byte* tiles, int64_t group_size,
                int64_t groups, std::byte* to);
int64_t packed_row_bytes(int64_t columns);
void pack_row(const MicroKernel& kernel, const int8_t* codes, int64_t columns, int row, int rows, int8_t* to);

}  // namespace mote::kleidiai
