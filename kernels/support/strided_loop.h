// Walks tensors of any strides in blocks of contiguous elements, so that an elementwise op is one loop over arrays.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/op.h"

namespace mote {

inline constexpr int64_t kBlock = 256;           // elements that an elementwise kernel gets at once
inline constexpr int64_t kElementGrain = 16384;  // elements worth handing to a thread if each is only copied

// Offset in elements of the first element of the `row`-th row: the last dimension is a row, the others count row-major.
inline int64_t row_offset(const Tensor& tensor, int64_t row) {
  int64_t offset = 0;
  for (int dim = tensor.rank - 2; dim >= 0; --dim) {
    const int64_t size = tensor.size(dim);
    offset += row % size * tensor.stride(dim);
    row /= size;
  }
  return offset;
}

inline int64_t row_length(const Tensor& tensor) { return tensor.rank == 0 ? 1 : tensor.size(-1); }
inline int64_t num_rows(const Tensor& tensor) {
  const int64_t length = row_length(tensor);
  return length == 0 ? 0 : tensor.num_elements() / length;
}

// Reads an operand in the order of an output: the output's dimensions with the operand's strides, or 0 where it is
// broadcast. Neighbouring dimensions are merged where the operand's strides allow it.
class Walk {
 public:
  // `operand` broadcasts to `sizes` as in PyTorch.
  Walk(const Tensor& operand, std::span<const int64_t> sizes) {
    const int shift = static_cast<int>(sizes.size()) - operand.rank;
    for (int dim = static_cast<int>(sizes.size()) - 1; dim >= 0; --dim) {
      const int64_t size = sizes[static_cast<size_t>(dim)];
      if (size == 1) continue;
      const bool broadcast = dim < shift || operand.size(dim - shift) == 1;
      add(size, broadcast ? 0 : operand.stride(dim - shift));
    }
  }

  bool is_contiguous() const { return rank_ == 0 || (rank_ == 1 && dims_[0].stride == 1); }

  // The elements [begin, begin + count) of the broadcast operand, row-major, as contiguous memory: `data` itself or a
  // copy in `buffer`.
  template <typename T>
  const T* read(const T* data, int64_t begin, int64_t count, T* buffer) const {
    if (is_contiguous()) return data + begin;
    for (int64_t done = 0; done < count;) {
      const int64_t run = copy_run(data, begin + done, count - done, buffer + done);
      done += run;
    }
    return buffer;
  }

 private:
  struct Dim {
    int64_t size = 1;
    int64_t stride = 0;
  };

  void add(int64_t size, int64_t stride) {  // called from the last dimension to the first
    if (rank_ > 0) {
      Dim& inner = dims_[rank_ - 1];
      if (stride == inner.stride * inner.size) {
        inner.size *= size;
        return;
      }
    }
    dims_[rank_++] = {size, stride};
  }

  // Copies what lies in one run of the innermost dimension; returns its length.
  template <typename T>
  int64_t copy_run(const T* data, int64_t index, int64_t limit, T* to) const {
    if (rank_ == 0) {
      std::fill(to, to + limit, data[0]);
      return limit;
    }
    const int64_t first = index % dims_[0].size;
    int64_t rest = index / dims_[0].size;
    int64_t offset = 0;
    for (int dim = 1; dim < rank_; ++dim) {
      offset += rest % dims_[dim].size * dims_[dim].stride;
      rest /= dims_[dim].size;
    }
    const int64_t run = std::min(limit, dims_[0].size - first);
    const int64_t stride = dims_[0].stride;
    const T* from = data + offset + first * stride;
    if (stride == 1) {
      std::copy(from, from + run, to);
    } else {
      for (int64_t i = 0; i < run; ++i) to[i] = from[i * stride];
    }
    return run;
  }

  Dim dims_[kMaxRank];  // innermost first
  int rank_ = 0;
};

// body(begin, count) over blocks of at most kBlock elements of [0, elements), in parallel where there are more than
// `grain`.
template <typename Body>
void for_each_block(ThreadPool& threads, int64_t elements, int64_t grain, const Body& body) {
  threads.parallel_for((elements + kBlock - 1) / kBlock, grain / kBlock, [&](int64_t first, int64_t last, int) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kBlock;
      body(begin, std::min(kBlock, elements - begin));
    }
  });
}

template <typename Body>
void for_each_block(ThreadPool& threads, int64_t elements, const Body& body) {
  for_each_block(threads, elements, kElementGrain, body);
}

}  // namespace mote
