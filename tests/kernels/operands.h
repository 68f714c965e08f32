// Operands of any strides and dtype, and an OpCall that says what it expects.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/kernels/harness.h"

namespace mote::test {

template <typename T> constexpr DType dtype_of();
template <> constexpr DType dtype_of<float>() { return DType::kFloat32; }
template <> constexpr DType dtype_of<int64_t>() { return DType::kInt64; }
template <> constexpr DType dtype_of<int32_t>() { return DType::kInt32; }
template <> constexpr DType dtype_of<uint16_t>() { return DType::kBFloat16; }
template <> constexpr DType dtype_of<int8_t>() { return DType::kInt8; }
template <> constexpr DType dtype_of<uint8_t>() { return DType::kBool; }

using Index = std::vector<int64_t>;

// body(index) for every index of a shape, row-major.
template <typename Body>
void for_each_index(const Shape& shape, const Body& body) {
  for (const int64_t size : shape) {
    if (size == 0) return;
  }
  Index index(shape.size(), 0);
  while (true) {
    body(index);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1]) index[--dim] = 0;
    if (dim == 0) return;
  }
}

// A tensor that shares its storage with its views.
class Operand {
 public:
  Operand(DType dtype, const Shape& shape) : Operand(make(dtype, shape)) {}
  explicit Operand(Owned owned) : tensor(owned.tensor), storage_(std::make_shared<Owned>(std::move(owned))) {
    tensor.data = storage_->bytes.data();
  }

  template <typename T>
  static Operand of(const Shape& shape, const std::vector<T>& values, DType dtype = dtype_of<T>()) {
    Operand operand(dtype, shape);
    EXPECT_EQ(static_cast<int64_t>(values.size()), operand.tensor.num_elements());
    if (!values.empty()) std::memcpy(operand.tensor.data, values.data(), values.size() * sizeof(T));
    return operand;
  }
  static Operand random(const Shape& shape, uint32_t seed) { return Operand(random_floats(shape, seed)); }

  int64_t offset(const Index& index) const {
    int64_t offset = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) offset += index[dim] * tensor.strides[dim];
    return offset;
  }
  template <typename T>
  T at(const Index& index) const {
    return tensor.as<T>()[offset(index)];
  }
  template <typename T>
  std::vector<T> values() const {
    std::vector<T> list;
    for_each_index(shape(), [&](const Index& index) { list.push_back(at<T>(index)); });
    return list;
  }
  Shape shape() const { return Shape(tensor.sizes.begin(), tensor.sizes.begin() + tensor.rank); }

  // The same elements, dimensions stored in reverse order with gaps between them.
  Operand strided() const {
    Tensor layout = tensor;
    int64_t stride = 2;
    for (size_t dim = 0; dim < static_cast<size_t>(tensor.rank); ++dim) {
      layout.strides[dim] = stride;
      stride = stride * tensor.sizes[dim] + 1;
    }
    Operand copy(tensor.dtype, {stride});
    layout.data = copy.tensor.data;
    copy.tensor = layout;
    const auto bytes = static_cast<size_t>(dtype_bytes(tensor.dtype));
    for_each_index(shape(), [&](const Index& index) {
      std::memcpy(copy.tensor.as<std::byte>() + static_cast<size_t>(copy.offset(index)) * bytes,
                  tensor.as<std::byte>() + static_cast<size_t>(offset(index)) * bytes, bytes);
    });
    return copy;
  }
  // `dim` (of size 1) seen `size` times at stride 0.
  Operand expanded(int dim, int64_t size) const {
    Operand copy = *this;
    copy.tensor.sizes[static_cast<size_t>(dim)] = size;
    copy.tensor.strides[static_cast<size_t>(dim)] = 0;
    return copy;
  }

  Tensor tensor;

 private:
  std::shared_ptr<Owned> storage_;
};

class CheckedCall {
 public:
  explicit CheckedCall(const std::string& name) : name_(name), call_(name) {}

  CheckedCall& input(const Operand& operand) {
    operands_.push_back(operand);
    call_.input(Owned{{}, operand.tensor});
    return *this;
  }
  CheckedCall& absent_input() { return call_.absent(), *this; }
  CheckedCall& output(DType dtype, const Shape& shape) { return call_.output(dtype, shape), ++num_outputs_, *this; }
  CheckedCall& integers(const std::string& name, const std::vector<int64_t>& values) {
    return call_.integers(name, values), *this;
  }
  CheckedCall& integer(const std::string& name, int64_t value) { return integers(name, {value}); }
  CheckedCall& number(const std::string& name, double value) { return call_.number(name, value), *this; }
  CheckedCall& text(const std::string& name, const std::string& value) { return call_.text(name, value), *this; }

  // Succeeds with 1 to 4 threads, with the same bits.
  void expect_success() {
    std::vector<std::vector<std::byte>> first;
    for (int num_threads = 1; num_threads <= 4; ++num_threads) {
      const Status status = call_.run(num_threads);
      ASSERT_TRUE(status.ok()) << name_ << ": " << status.message();
      for (size_t i = 0; i < num_outputs_; ++i) {
        if (num_threads == 1) first.push_back(call_.result(i).bytes);
        EXPECT_EQ(first[i] == call_.result(i).bytes, true)
            << name_ << ": other bits with " << num_threads << " threads";
      }
    }
  }
  // `check` refuses it, and the message holds `part`.
  void expect_refusal(const std::string& part) { expect_failure(call_.check(), Code::kInvalidProgram, part); }
  // `check` accepts it and `run` refuses the data.
  void expect_bad_data(const std::string& part) {
    const Status accepted = call_.check();
    ASSERT_TRUE(accepted.ok()) << accepted.message();
    expect_failure(call_.run(3), Code::kInvalidArgument, part);
  }

  Operand result(size_t index = 0) { return Operand(call_.result(index)); }

 private:
  void expect_failure(const Status& status, Code code, const std::string& part) {
    ASSERT_FALSE(status.ok()) << name_ << " accepted what it should refuse for '" << part << "'";
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message() << " lacks '" << part << "'";
  }

  std::string name_;
  std::vector<Operand> operands_;  // keeps their storage
  OpCall call_;
  size_t num_outputs_ = 0;
};

// |found - expected| <= absolute + relative * |expected|, infinities equal, NaN where NaN.
inline void expect_close(const std::vector<float>& found, const std::vector<double>& expected, double relative = 1e-5,
                         double absolute = 1e-6) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double value = static_cast<double>(found[i]), right = expected[i];
    const bool close = std::isnan(right)   ? std::isnan(value)
                       : std::isinf(right) ? value == right
                                           : std::fabs(value - right) <= absolute + relative * std::fabs(right);
    EXPECT_TRUE(close) << "element " << i << ": " << value << " instead of " << right;
  }
}

}  // namespace mote::test
