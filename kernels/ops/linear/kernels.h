// What the variants of a product supply; product.h calls them. Only structs and constexpr arithmetic, since files that
// are compiled for newer CPUs include this (kernels/simd/vectors.h says why).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/formats.h"
#include "kernels/tensor.h"

namespace mote {

inline constexpr int kTokenBlock = 16;     // most rows of activations that are multiplied together
inline constexpr int kRegisterTokens = 4;  // most rows whose sums of a block stay in registers
inline constexpr int kMaxStreams = 4;      // blocks of 16 weight rows that are multiplied together

// Some blocks of 16 weight rows, each `groups` tiles long, or as a kernel has packed them.
struct TileBlocks {
  const std::byte* blocks[kMaxStreams];
  int count = 0;
  int bits = 0;
  int64_t group_size = 0;
  TileScales scales;
  int64_t groups = 0;
  int64_t ahead = 0;  // bytes from each block to what is likely multiplied after it; 0: not known

  int64_t columns() const { return groups * group_size; }
  TileLayout layout() const { return {bits, group_size, scales}; }
  // The scales of the 16 rows of a block, which must be of tiles with multipliers of them.
  const float* row_scales(int block) const {
    return reinterpret_cast<const float*>(blocks[block] + groups * tile_bytes(bits, group_size));
  }
};

// How the codes of a block lie: runs of rows, one after the other, of which the last has the rows that are left.
//   kQuads          runs of 4 rows, each [columns / 4][rows][4]
//   kUnsignedQuads  the same of unsigned bytes: kUnsignedZero is added to codes and zeros
//   kChunks         one run, [columns / 64][rows][64], what is past the last column undefined
enum class CodeLayout : uint8_t { kQuads, kUnsignedQuads, kChunks };
inline constexpr int kUnsignedZero = 128;

constexpr int columns_together(CodeLayout layout) { return layout == CodeLayout::kChunks ? 64 : 4; }
constexpr int run_rows(CodeLayout layout) { return layout == CodeLayout::kChunks ? kTokenBlock : 4; }

// Up to kTokenBlock rows of activations as int8 codes: the value of a code is scale * (code - zero). Of rows that are
// quantised symmetrically all zeros are 0, or kUnsignedZero.
struct CodeBlock {
  const int8_t* codes;  // in the layout that the product wants
  const int32_t*
      offsets;           // of each run [groups][rows], -code_offset(bits) * the sum of a group's codes; nullptr: packed
  const float* scales;   // [count]
  const int32_t* zeros;  // [count]
  const int32_t* sums;   // [count], of a row's codes
  int count;
};

// Columns of an activation that share a scale where they are rounded in groups.
inline constexpr int64_t kInputGroup = 32;
// What a product with such activations adds up as integers.
constexpr int64_t step_columns(int64_t group_size) { return group_size < kInputGroup ? group_size : kInputGroup; }

// Up to kTokenBlock rows of activations as int8 codes with a scale for each kInputGroup of them, in runs of kQuads.
// `step` is step_columns of the weight's groups.
struct GroupBlock {
  const int8_t* codes;
  const int32_t* offsets;  // of each run [columns / step][rows], -code offset of the weight * the sum of a step's codes
  const float* lows;       // likewise, scale * the sum of a step's codes
  const float* scales;     // of each run [columns / kInputGroup][rows]
  int count;
};

// Up to kTokenBlock rows of activations as floats.
struct FloatBlock {
  const float* values;  // [columns][count]
  int count;
};

// The layout of 16 rows of a weight for kernels that cannot read tiles. Weights are packed once a program; kernels that
// name the same packing share them.
struct WeightPacking {
  std::string_view format;  // the name that its authors use, such as qsi4c32p8x4
  size_t (*block_bytes)(int64_t group_size, int64_t groups);
  // Writes all bytes of a block. `tiles`: 16 rows.
  void (*pack)(const std::byte* tiles, int64_t group_size, int64_t groups, std::byte* to);
};

// The layout of the codes of a block of rows for kernels that read no CodeLayout.
struct CodePacking {
  int rows_together;  // a block takes memory for its rows rounded up to a multiple of this
  int64_t (*row_bytes)(int64_t columns);
  // Writes row `row` of a block of `rows`. codes: [columns]
  void (*pack_row)(const int8_t* codes, int64_t columns, int row, int rows, int8_t* to);
};

// y[t][16 s + r] = row r of block s times row t, rows of y `stride` floats apart, t counted through all blocks. Each
// element:
//   codes   scale * (weight scale * float(the sum of multiplier * weight code * (code - zero))), where the sum is an
//           integer modulo 2^32, so that its order is free
//   floats  weight scale * the sum in the order of groups of fma(multiplier, sum in the order of columns of
//           fma(weight code, value, .), .); of tiles with float16 scales row scale * the sum in the order of 32 columns
//           of the sum in the order of columns of fma(fma(group scale, code, group low), value, .)
//   groups  row scale * the sum in the order of steps of fma(group low, low, fma(group scale, scale * float(the sum of
//           weight code * code), .)), where the group's scale is float16 scale * multiplier, as far as there are any
// so the same bits come out of every variant, for every count of blocks, streams and tokens.
struct CodeProducts {
  static constexpr std::string_view kRole = "linear.codes";
  CodeLayout layout;
  size_t (*scratch_bytes)(int64_t columns);
  void (*multiply)(const TileBlocks& weight, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride,
                   std::byte* scratch);
  const WeightPacking* weight_packing = nullptr;  // nullptr: reads tiles
  const CodePacking* code_packing = nullptr;      // nullptr: reads `layout`
};

struct GroupProducts {
  static constexpr std::string_view kRole = "linear.groups";
  size_t (*scratch_bytes)(int64_t columns);
  void (*multiply)(const TileBlocks& weight, const GroupBlock* x, int64_t num_blocks, float* y, int64_t stride,
                   std::byte* scratch);
};

struct FloatProducts {
  static constexpr std::string_view kRole = "linear.floats";
  void (*multiply)(const TileBlocks& weight, const FloatBlock* x, int64_t num_blocks, float* y, int64_t stride);
};

// Dense rows of float32, float16 or bfloat16. y[t][r] = row r times row t of x, 16 lanes (column k in lane k % 16),
// then sum_lanes.
struct DenseRows {
  const std::byte* rows;
  DType dtype;
  int64_t row_bytes;
  int64_t count;
  int64_t columns;
};
struct DenseProducts {
  static constexpr std::string_view kRole = "linear.dense";
  // x: rows `columns` floats long, `x_stride` apart
  void (*multiply)(const DenseRows& weight, const float* x, int64_t x_stride, int64_t tokens, float* y, int64_t stride);
};

// Dense columns: y[t][i] += the sum over r, ascending, of fma(rows[r * pitch + i], x[t][r], .).
struct LowRankProducts {
  static constexpr std::string_view kRole = "linear.low_rank";
  // rows: of `dtype`, `pitch` elements apart; x: [tokens, rank]; y: rows `stride` floats apart
  void (*add)(const std::byte* rows, DType dtype, int64_t pitch, int64_t rank, const float* x, int64_t tokens,
              int64_t count, float* y, int64_t stride);
};

// How a row is quantised: the value of a code is scale * (code - zero).
struct RowCodes {
  float scale;
  int32_t zero;
  int32_t sum;  // of all codes
};
// What is done to one row before and after a product.
struct RowKernels {
  static constexpr std::string_view kRole = "linear.rows";
  // y = x normalised by its root mean square: x / sqrt(mean(x^2) + eps) * (weight + offset); weight may be nullptr.
  void (*rms_norm)(const float* x, int64_t width, float eps, const float* weight, float offset, float* y);
  // The rotation of docs/ops.md, and its inverse in place. y may be x. width: a multiple of 16
  void (*rotate)(const float* x, int64_t width, float* y);
  void (*rotate_back)(float* x, int64_t width);
  // Quantises one row of a run of `rows` as docs/ops.md says, `symmetric` as rotated rows. Writes the code of column k
  // to codes[n * rows * (k / n) + k % n], where n is columns_together(layout), and the offset of group g (CodeBlock) to
  // offsets[rows * g].
  RowCodes (*quantize)(const float* x, int64_t width, bool symmetric, int64_t group_size, int code_offset, int rows,
                       CodeLayout layout, int8_t* codes, int32_t* offsets);
  // Quantises one row of a run of `rows` in groups of kInputGroup columns as docs/ops.md says, codes in the layout
  // kQuads. Step s's offset goes to offsets[rows * s] and its low to lows[rows * s] (GroupBlock), the scale of group g
  // to scales[rows * g].
  void (*quantize_groups)(const float* x, int64_t width, int64_t step, int code_offset, int rows, int8_t* codes,
                          int32_t* offsets, float* lows, float* scales);
  // to = (code - zero) * scale, what a dense weight multiplies.
  void (*round)(const float* x, int64_t width, bool symmetric, float* to);
  void (*round_groups)(const float* x, int64_t width, float* to);
  // to[i] = (from[i] + bias[i]) + residual[i]; bias and residual may be nullptr.
  void (*finish)(const float* from, const float* bias, const float* residual, int64_t count, float* to);
  // to[i] = gate(gates[i] + gate_bias[i]) * (ups[i] + up_bias[i]), where `function` is a GateFunction. Biases may be
  // nullptr, and so may ups: then the gate alone.
  void (*gate)(int function, const float* gates, const float* gate_bias, const float* ups, const float* up_bias,
               int64_t count, float* to);
};

}  // namespace mote
