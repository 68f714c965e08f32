// What adapters add to the products of one call of mote.linear or mote.gated_linear.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/adapters.h"
#include "kernels/ops/linear/strips.h"

namespace mote {

// Rows of activations times A, made once a call; then what B makes of them is added strip by strip. Each element's sum
// has one order: adapters as the sequence lists them, ranks ascending. So a sequence gets the same bits alone and
// beside others.
class AddedProducts {
 public:
  // Without effect, and at the cost of one comparison, where no sequence has an adapter for the weight. Errors:
  // kUnsupportedOp where rows of activations are not tokens and sequences have different adapters.
  static Result<AddedProducts> make(const Call& call, const FusedNorm& norm, const KernelContext& context);

  // y[t][i] += what adapters add to row `row` + i of the weight for row `first` + t of the activations. width: at most
  // 64
  void add(int64_t first, int64_t count, int64_t row, int64_t width, float* y, int64_t stride) const {
    if (num_items_ > 0) add_items(first, count, row, width, y, stride);
  }

 private:
  void add_items(int64_t first, int64_t count, int64_t row, int64_t width, float* y, int64_t stride) const;
  void scale_rows(int64_t first, int64_t count, int64_t row, int64_t width, float* y, int64_t stride) const;

  const AdapterItem* items_ = nullptr;  // in the order of rows of activations, then of adapters
  int64_t num_items_ = 0;
  bool has_gains_ = false;
};

}  // namespace mote
