// What the `check` of an op says about its operands and attributes. Messages name the operand, its value and what would
// be accepted; the executor puts the instruction in front.
#pragma once

#include <initializer_list>
#include <span>

#include "kernels/op.h"

namespace mote {

inline constexpr int64_t kMaxTensorElements = int64_t{1} << 40;

// Sizes that an op computes for an output.
struct Sizes {
  std::array<int64_t, kMaxRank> values{};
  int rank = 0;

  Sizes() = default;
  Sizes(std::initializer_list<int64_t> sizes) {
    for (const int64_t size : sizes) push(size);
  }
  static Sizes of(const Tensor& tensor);
  void push(int64_t size) { values[static_cast<size_t>(rank++)] = size; }  // at most kMaxRank times
  int64_t& operator[](int dim) { return values[static_cast<size_t>(dim < 0 ? dim + rank : dim)]; }
  std::span<const int64_t> span() const { return {values.data(), static_cast<size_t>(rank)}; }
};

// nullptr where an optional input is absent or the list ends before it.
inline const Tensor* optional_input(const Call& call, size_t index) {
  return index < call.inputs.size() ? call.inputs[index] : nullptr;
}

// Between `required` and `most` inputs, of which the first `required` are present, and `outputs` outputs. Every tensor
// has a rank of at most kMaxRank, sizes and strides of at least 0, a stride * (size - 1) of at most 2^42 in each
// dimension, and at most kMaxTensorElements elements where a size of 0 counts as 1.
Status expect_operands(const Call& call, size_t required, size_t most, size_t outputs);
Status expect_present(const Call& call, size_t input, const char* name);

// Not quantised, and of one of these dtypes.
Status expect_dtype(const Tensor& tensor, const char* name, std::initializer_list<DType> accepted);
Status expect_rank(const Tensor& tensor, const char* name, int low, int high);
Status expect_sizes(const Tensor& tensor, const char* name, std::span<const int64_t> sizes);
inline Status expect_sizes(const Tensor& tensor, const char* name, std::initializer_list<int64_t> sizes) {
  return expect_sizes(tensor, name, std::span<const int64_t>(sizes.begin(), sizes.size()));
}
// float32, contiguous, of these sizes: small parameters such as biases and norm weights.
Status expect_parameter(const Tensor& tensor, const char* name, std::initializer_list<int64_t> sizes);
// A matrix (or `rank` - 2 leading dimensions of them): float32, float16 or bfloat16 and contiguous, or tiles.
Status expect_weight(const Tensor& tensor, const char* name, int rank);
// Contiguous, of this dtype and of these sizes.
Status expect_output(const Call& call, size_t index, DType dtype, std::span<const int64_t> sizes);

Result<int64_t> integer_in(const Call& call, std::string_view name, int64_t low, int64_t high);
Result<int64_t> integer_or(const Call& call, std::string_view name, int64_t fallback, int64_t low, int64_t high);
// The attribute `dim` of a tensor of this rank; a rank of 0 counts as 1, as in PyTorch.
Result<int> dim_in(const Call& call, std::string_view name, int rank);
Result<double> number_or(const Call& call, std::string_view name, double fallback);
// Position of the text in `accepted`; an absent attribute is the first one.
Result<int> choice(const Call& call, std::string_view name, std::span<const std::string_view> accepted);
inline Result<int> choice(const Call& call, std::string_view name, std::initializer_list<std::string_view> accepted) {
  return choice(call, name, std::span<const std::string_view>(accepted.begin(), accepted.size()));
}
// A list of integers, each in low..high, at most `most` of them.
Result<std::span<const int64_t>> integers_in(const Call& call, std::string_view name, int64_t low, int64_t high,
                                             size_t most);

}  // namespace mote
