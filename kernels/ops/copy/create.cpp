// Tensors made from attributes: full and arange.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/ops/copy/copy.h"
#include "kernels/support/float_bits.h"

namespace mote {

namespace {

constexpr int64_t kMaxBound = int64_t{1} << 53;

// Whether `value` is a whole number in low..high.
bool holds(double value, double low, double high) {
  return value >= low && value <= high && std::trunc(value) == value;
}

Status refuse(double value, DType dtype) {
  return Status(Code::kInvalidProgram,
                format("attribute 'value' = %g: must be a value of %s", value, dtype_name(dtype)));
}

}  // namespace

Result<uint64_t> element_of(double value, DType dtype) {
  const float single = static_cast<float>(value);
  switch (dtype) {
    case DType::kFloat32: return uint64_t{std::bit_cast<uint32_t>(single)};
    case DType::kFloat16: return uint64_t{float32_to_float16(single)};
    case DType::kBFloat16: return uint64_t{float32_to_bfloat16(single)};
    case DType::kInt64:
      if (!holds(value, -0x1p63, 0x1.fffffffffffffp62)) return refuse(value, dtype);
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    case DType::kInt32:
      if (!holds(value, -0x1p31, 0x1p31 - 1)) return refuse(value, dtype);
      return uint64_t{static_cast<uint32_t>(static_cast<int32_t>(value))};
    case DType::kInt8:
      if (!holds(value, -128, 127)) return refuse(value, dtype);
      return uint64_t{static_cast<uint8_t>(static_cast<int8_t>(value))};
    case DType::kUint8:
      if (!holds(value, 0, 255)) return refuse(value, dtype);
      return uint64_t{static_cast<uint8_t>(value)};
    case DType::kBool: return uint64_t{value != 0 ? 1u : 0u};
  }
  return refuse(value, dtype);
}

namespace {

struct FullParams {
  uint64_t element;
};

Status check_full(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 0, 0, 1));
  MOTE_ASSIGN(const auto size, integers_in(call, "size", 0, kMaxTensorElements, kMaxRank));
  const DType dtype = call.outputs[0]->dtype;
  MOTE_RETURN_IF_ERROR(expect_output(call, 0, dtype, size));
  MOTE_ASSIGN(const double value, call.number("value"));
  MOTE_ASSIGN(const uint64_t element, element_of(value, dtype));
  call.make_params<FullParams>().element = element;
  return Status();
}

Status run_full(const Call& call, KernelContext&) {
  const Tensor& y = *call.outputs[0];
  with_element_type(y.dtype, [&]<typename T>() {
    std::fill_n(y.as<T>(), y.num_elements(), static_cast<T>(call.get_params<FullParams>().element));
  });
  return Status();
}

OutputAxis full_axis(const SymbolicCall& call) { return axis_of(call.output); }

struct ArangeParams {
  int64_t start;
  int64_t step;
};

Status check_arange(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 0, 0, 1));
  MOTE_ASSIGN(const int64_t start, integer_in(call, "start", -kMaxBound, kMaxBound));
  MOTE_ASSIGN(const int64_t end, integer_in(call, "end", -kMaxBound, kMaxBound));
  MOTE_ASSIGN(const int64_t step, integer_in(call, "step", -kMaxBound, kMaxBound));
  MOTE_REQUIRE(step != 0, Code::kInvalidProgram, "attribute 'step' = 0: must not be 0");
  const int64_t distance = step > 0 ? end - start : start - end;
  const int64_t stride = step > 0 ? step : -step;
  MOTE_REQUIRE(distance >= 0, Code::kInvalidProgram,
               "attribute 'end' = %lld: must not lie before start %lld for step %lld", static_cast<long long>(end),
               static_cast<long long>(start), static_cast<long long>(step));
  call.make_params<ArangeParams>() = {start, step};
  const int64_t size[] = {(distance + stride - 1) / stride};
  return expect_output(call, 0, DType::kInt64, size);
}

Status run_arange(const Call& call, KernelContext&) {
  const ArangeParams& params = call.get_params<ArangeParams>();
  const Tensor& y = *call.outputs[0];
  for (int64_t i = 0; i < y.size(0); ++i) y.as<int64_t>()[i] = params.start + i * params.step;
  return Status();
}

// A range that depends on T would count on through the tokens of the next sequence.
OutputAxis arange_axis(const SymbolicCall& call) {
  for (const char* name : {"start", "end", "step"}) {
    const SymbolicCall::Attribute* bound = call.find(name);
    if (bound != nullptr && bound->dims[0].tokens != 0) return kMixesTokens;
  }
  return TokenAxis();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.full", .check = check_full, .run = run_full, .token_axis = full_axis);
MOTE_REGISTER_OP(.name = "aten.arange", .check = check_arange, .run = run_arange, .token_axis = arange_axis);

}  // namespace mote
