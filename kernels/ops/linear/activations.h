// Rows of activations as a matrix product reads them: normalised if the op says so, quantised, interleaved.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/ops/linear/kernels.h"
#include "kernels/ops/linear/matrix.h"
#include "kernels/support/scratch.h"
#include "kernels/thread_pool.h"

namespace mote {

// What a product does with its activations.
enum class ActivationMode : uint8_t {
  kDense,    // as they are, against a dense weight
  kRounded,  // rounded to int8 and back, against a dense weight, which has no codes
  kFloats,   // as they are, against tiles
  kCodes,    // int8 codes with a scale a row against tiles
  kGroups,   // int8 codes with a scale for each kInputGroup columns against tiles
};

// What the attribute `activations` says of the input of a product, in the order of kInputNames.
enum class InputRounding : uint8_t { kNone, kInt8, kRotatedInt8, kGroupedInt8 };
inline constexpr std::array<std::string_view, 4> kInputNames = {"float", "int8", "rotated_int8", "grouped_int8"};

ActivationMode activation_mode(InputRounding rounding, const Tensor& weight);

// The form in which a product reads activations, and the kernels that bring them into it.
struct ActivationForm {
  const RowKernels* rows = nullptr;
  const CodePacking* packing = nullptr;  // how codes lie; nullptr: in `layout`
  CodeLayout layout = CodeLayout::kQuads;
  ActivationMode mode = ActivationMode::kDense;
  bool is_rotated = false;  // rows are rotated, after they were normalised
  bool in_groups = false;   // kRounded: as kGroups rounds

  bool operator==(const ActivationForm&) const = default;
};

// A root mean square normalisation before the product.
struct FusedNorm {
  bool present = false;
  float eps = 0;
  float offset = 0;  // added to the weight
  const float* weight = nullptr;
};

// Which rows of x are multiplied, in which order (an index into it is a place), and where blocks of at most kTokenBlock
// places begin. Where a RowOrder* is nullptr: all rows in their own order, a block every kTokenBlock.
struct RowOrder {
  const int32_t* rows = nullptr;      // [count] row of x at a place; nullptr: row i at place i
  const int32_t* block_of = nullptr;  // [count] block that a place is in
  const int32_t* first = nullptr;     // [num_blocks + 1] first place of a block
  int64_t num_blocks = 0;
};

struct Activations {
  int64_t count = 0;
  int64_t width = 0;
  int64_t num_blocks = 0;
  const int32_t* first = nullptr;            // [num_blocks + 1] first row of a block; nullptr: kTokenBlock rows each
  const float* values = nullptr;             // kDense, kRounded: [count, width]
  const CodeBlock* code_blocks = nullptr;    // kCodes
  const GroupBlock* group_blocks = nullptr;  // kGroups
  const FloatBlock* float_blocks = nullptr;  // kFloats

  int64_t first_row(int64_t block) const {
    if (first != nullptr) return first[block];
    return block == num_blocks ? count : block * kTokenBlock;
  }
};

// Scratch that prepare_activations takes for `count` rows in at most `num_blocks` blocks.
size_t activations_bytes(const ActivationForm& form, const Matrix& weight, int64_t count, int64_t num_blocks,
                         int num_threads);

// x: float32 rows of any strides, as wide as the weight
Activations prepare_activations(const ActivationForm& form, const Tensor& x, const FusedNorm& norm,
                                const Matrix& weight, const RowOrder* order, Scratch& scratch, ThreadPool& threads);

}  // namespace mote
