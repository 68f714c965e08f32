// The lines of a tensor along one dimension: what softmax, cumsum, sorting and argmax work on.
#pragma once

#include <algorithm>

#include "kernels/op.h"

namespace mote {

inline constexpr int64_t kLineGrainElements = 4096;

// Line i counts the other dimensions row-major; a rank of 0 counts as one line of one element.
class Lines {
 public:
  Lines(const Tensor& tensor, int dim) {
    if (tensor.rank == 0) return;
    length_ = tensor.size(dim);
    stride_ = tensor.stride(dim);
    for (int other = 0; other < tensor.rank; ++other) {
      if (other == dim) continue;
      sizes_[rank_] = tensor.size(other);
      strides_[rank_++] = tensor.stride(other);
      count_ *= tensor.size(other);
    }
  }

  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  int64_t stride() const { return stride_; }
  // How many lines are worth a thread.
  int64_t grain() const { return std::max<int64_t>(1, kLineGrainElements / std::max<int64_t>(length_, 1)); }

  // Offset in elements of a line's first element.
  int64_t offset(int64_t line) const {
    int64_t offset = 0;
    for (int dim = rank_ - 1; dim >= 0; --dim) {
      offset += line % sizes_[dim] * strides_[dim];
      line /= sizes_[dim];
    }
    return offset;
  }

 private:
  int rank_ = 0;
  int64_t sizes_[kMaxRank] = {};
  int64_t strides_[kMaxRank] = {};
  int64_t count_ = 1;
  int64_t length_ = 1;
  int64_t stride_ = 1;
};

}  // namespace mote
