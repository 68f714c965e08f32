// Copies that keep every element: clone and _to_copy.
#include <cmath>
#include <cstring>

#include "kernels/ops/copy/copy.h"
#include "kernels/support/float_bits.h"

namespace mote {

namespace {

template <typename T>
void copy_elements(const Tensor& x, const Tensor& y, ThreadPool& threads) {
  const Sizes sizes = Sizes::of(y);
  const Walk walk(x, sizes.span());
  for_each_block(threads, y.num_elements(), [&](int64_t begin, int64_t count) {
    T buffer[kBlock];
    const T* from = walk.read(x.as<T>(), begin, count, buffer);
    std::memcpy(y.as<T>() + begin, from, static_cast<size_t>(count) * sizeof(T));
  });
}

}  // namespace

void copy_strided(const Tensor& x, const Tensor& y, ThreadPool& threads) {
  with_element_type(x.dtype, [&]<typename T>() { copy_elements<T>(x, y, threads); });
}

namespace {

Status check_clone(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "input 0", {x.dtype}));
  return expect_output(call, 0, x.dtype, Sizes::of(x).span());
}

Status run_clone(const Call& call, KernelContext& context) {
  copy_strided(*call.inputs[0], *call.outputs[0], *context.threads);
  return Status();
}

// An element as a type that holds it exactly. float16 and bfloat16 are widened to float32 first.
float read_element(float value) { return value; }
int64_t read_element(int64_t value) { return value; }
int32_t read_element(int32_t value) { return value; }
int32_t read_element(int8_t value) { return value; }
int32_t read_element(uint8_t value) { return value; }

// Defined for every value: NaN gives 0, a value out of range the nearest int64.
int64_t to_integer(float value) {
  if (!(value > -0x1p63f)) return std::isnan(value) ? 0 : INT64_MIN;
  return value < 0x1p63f ? static_cast<int64_t>(value) : INT64_MAX;
}

template <typename From>
int64_t to_integer_of(From value) {
  if constexpr (std::is_same_v<From, float>) {
    return to_integer(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

// Converts one block to `dtype`. Integers that do not fit are truncated to their low bits.
template <typename From>
void convert_block(const From* from, int64_t count, DType dtype, void* to, int64_t begin) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = read_element(from[i]);
    switch (dtype) {
      case DType::kFloat32: static_cast<float*>(to)[begin + i] = static_cast<float>(value); break;
      case DType::kFloat16:
        static_cast<uint16_t*>(to)[begin + i] = float32_to_float16(static_cast<float>(value));
        break;
      case DType::kBFloat16:
        static_cast<uint16_t*>(to)[begin + i] = float32_to_bfloat16(static_cast<float>(value));
        break;
      case DType::kInt64: static_cast<int64_t*>(to)[begin + i] = to_integer_of(value); break;
      case DType::kInt32: static_cast<int32_t*>(to)[begin + i] = static_cast<int32_t>(to_integer_of(value)); break;
      case DType::kInt8: static_cast<int8_t*>(to)[begin + i] = static_cast<int8_t>(to_integer_of(value)); break;
      case DType::kUint8: static_cast<uint8_t*>(to)[begin + i] = static_cast<uint8_t>(to_integer_of(value)); break;
      case DType::kBool: static_cast<uint8_t*>(to)[begin + i] = value != 0 ? 1 : 0; break;
    }
  }
}

template <typename From>
void convert(const Tensor& x, const Tensor& y, ThreadPool& threads) {
  const Sizes sizes = Sizes::of(y);
  const Walk walk(x, sizes.span());
  for_each_block(threads, y.num_elements(), [&](int64_t begin, int64_t count) {
    From buffer[kBlock];
    const From* from = walk.read(x.as<From>(), begin, count, buffer);
    if constexpr (std::is_same_v<From, uint16_t>) {
      float wide[kBlock];
      to_float32(from, x.dtype, count, wide);
      convert_block(wide, count, y.dtype, y.data, begin);
    } else {
      convert_block(from, count, y.dtype, y.data, begin);
    }
  });
}

Status check_to_copy(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "input 0", {x.dtype}));
  return expect_output(call, 0, call.outputs[0]->dtype, Sizes::of(x).span());
}

Status run_to_copy(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& y = *call.outputs[0];
  if (x.dtype == y.dtype) {
    copy_strided(x, y, *context.threads);
    return Status();
  }
  switch (x.dtype) {
    case DType::kFloat32: convert<float>(x, y, *context.threads); break;
    case DType::kFloat16:
    case DType::kBFloat16: convert<uint16_t>(x, y, *context.threads); break;
    case DType::kInt64: convert<int64_t>(x, y, *context.threads); break;
    case DType::kInt32: convert<int32_t>(x, y, *context.threads); break;
    case DType::kInt8: convert<int8_t>(x, y, *context.threads); break;
    case DType::kUint8:
    case DType::kBool: convert<uint8_t>(x, y, *context.threads); break;
  }
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.clone", .check = check_clone, .run = run_clone, .token_axis = same_axis);
MOTE_REGISTER_OP(.name = "aten._to_copy", .check = check_to_copy, .run = run_to_copy, .token_axis = same_axis);

}  // namespace mote
