#include "kernels/tensor.h"

#include <algorithm>
#include <limits>

namespace mote {

namespace {

// Sizes from a file may multiply past int64: stick to the largest value instead.
int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    case DType::kInt64: return "int64";
    case DType::kInt32: return "int32";
    case DType::kInt8: return "int8";
    case DType::kUint8: return "uint8";
    case DType::kBool: return "bool";
  }
  return "unknown";
}

int64_t Tensor::num_elements() const {
  int64_t count = 1;
  for (int dim = 0; dim < rank; ++dim) {
    if (size(dim) == 0) return 0;
    count = saturating_product(count, size(dim));
  }
  return count;
}

bool Tensor::is_contiguous() const {
  if (num_elements() == 0) return true;
  int64_t expected = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    if (size(dim) == 1) continue;
    if (stride(dim) != expected) return false;
    expected = saturating_product(expected, size(dim));
  }
  return true;
}

void Tensor::set_contiguous_strides() {
  int64_t step = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    strides[static_cast<size_t>(dim)] = step;
    step = saturating_product(step, std::max<int64_t>(size(dim), 1));
  }
}

}  // namespace mote
