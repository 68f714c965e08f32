// What runs mote.moe_experts. Choices are sorted by expert, so that each expert's tiles are read once for all of its
// tokens.
#pragma once

#include <algorithm>

#include "kernels/op.h"
#include "kernels/ops/linear/product.h"
#include "kernels/support/gate_function.h"

namespace mote {

enum MoeInput : size_t { kX = 0, kIndices, kWeights, kGateUp, kDown, kGateUpBias, kDownBias };

inline constexpr int64_t kFewTokens = 4;      // of one expert at most, for ExpertProducts::few
inline constexpr int64_t kTokensAtOnce = 32;  // of one expert, in one product

enum class GateLayout : int { kConcatenated = 0, kInterleaved, kSingle };

// The kernels for experts that few tokens chose, and for the others.
struct ExpertProducts {
  Product few;
  Product many;

  // `few` is used only if it reads activations as `many` does: they are laid out before each expert's count is known.
  const Product& of(int64_t count) const { return count <= kFewTokens && few.x == many.x ? few : many; }
  size_t scratch_bytes(const Matrix& matrix) const {
    return std::max(few.scratch_bytes(matrix), many.scratch_bytes(matrix));
  }
};

// choices: tokens times experts a token
Result<ExpertProducts> select_expert_products(InputRounding rounding, const Tensor& weight, int64_t choices,
                                              PackedWeights* packed);

struct MoeParams {
  ExpertProducts gate_up;
  ExpertProducts down;
  GateFunction function = GateFunction::kSilu;
  GateLayout layout = GateLayout::kConcatenated;
  // Both 0: function(gate) * up. limit: gate is at most that, up within +-limit. alpha: (up + 1) * gate *
  // sigmoid(alpha * gate). GateLayout::kSingle ignores both. Source: gate_experts in llm_export/capture/ops.py.
  float gate_softcap = 0;  // 0: none; the gate's own factor is capped, and what its sigmoid sees is not
  float up_softcap = 0;
  float limit = 0;
  float alpha = 0;
};

size_t moe_scratch_bytes(const Call& call, int num_threads);
Status run_moe(const Call& call, KernelContext& context);

}  // namespace mote
