// Elements of any dtype, compared by their bytes.
#pragma once

#include <string>

#include "tests/kernels/operands.h"

namespace mote::test {

inline constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                                    DType::kInt32,   DType::kInt8,    DType::kUint8,    DType::kBool};

// Elements whose bytes all differ.
inline Operand numbered(DType dtype, const Shape& shape, int seed = 1) {
  Operand x(dtype, shape);
  const int64_t bytes = x.tensor.num_elements() * dtype_bytes(dtype);
  for (int64_t i = 0; i < bytes; ++i) x.tensor.as<uint8_t>()[i] = static_cast<uint8_t>(i * 31 + (i >> 8) + seed);
  return x;
}

// Bytes of one element.
inline std::string bytes_at(const Operand& x, const Index& index) {
  const auto size = static_cast<size_t>(dtype_bytes(x.tensor.dtype));
  return std::string(x.tensor.as<const char>() + static_cast<size_t>(x.offset(index)) * size, size);
}

// y[index] = source(index) for every index.
template <typename Source>
void expect_elements(const Operand& y, const Source& source) {
  for_each_index(y.shape(), [&](const Index& index) { EXPECT_EQ(bytes_at(y, index), source(index)); });
}

}  // namespace mote::test
