// Reductions over any set of dimensions. The reduced elements are taken row-major; element k belongs to lane k % 16, so
// the order depends neither on the number of outputs nor on threads.
#include <array>
#include <limits>

#include "kernels/simd/simd.h"
#include "kernels/support/contract.h"
#include "kernels/support/strided_loop.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

// Wraps instead of overflowing.
int64_t add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
float add(float a, float b) { return a + b; }
float multiply(float a, float b) { return a * b; }

// A NaN on either side stays.
template <typename T> T larger(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> T smaller(T a, T b) { return a < b || a != a ? a : b; }

template <typename T> constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}
template <typename T> constexpr T highest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

struct Sum {
  template <typename T> static constexpr T kStart = 0;
  template <typename T> static T combine(T a, T b) { return add(a, b); }
};
struct Prod {
  template <typename T> static constexpr T kStart = 1;
  template <typename T> static T combine(T a, T b) { return multiply(a, b); }
};
struct Amax {
  template <typename T> static constexpr T kStart = lowest<T>();
  template <typename T> static T combine(T a, T b) { return larger(a, b); }
};
struct Amin {
  template <typename T> static constexpr T kStart = highest<T>();
  template <typename T> static T combine(T a, T b) { return smaller(a, b); }
};
struct Any {
  template <typename T> static constexpr T kStart = 0;
  template <typename T> static T combine(T a, T b) { return static_cast<T>(a | b); }
};
struct All {
  template <typename T> static constexpr T kStart = 1;
  template <typename T> static T combine(T a, T b) { return static_cast<T>(a & b); }
};

template <typename Function>
inline constexpr bool kIsLogical = std::is_same_v<Function, Any> || std::is_same_v<Function, All>;

// x with only the dimensions in `mask`, or only the others.
Tensor dims_of(const Tensor& x, uint32_t mask, bool masked) {
  Tensor part = x;
  part.rank = 0;
  for (int dim = 0; dim < x.rank; ++dim) {
    if (((mask >> dim & 1u) != 0) != masked) continue;
    part.sizes[static_cast<size_t>(part.rank)] = x.size(dim);
    part.strides[static_cast<size_t>(part.rank++)] = x.stride(dim);
  }
  return part;
}

int64_t offset_of(const Tensor& tensor, int64_t element) {
  int64_t offset = 0;
  for (int dim = tensor.rank - 1; dim >= 0; --dim) {
    offset += element % tensor.size(dim) * tensor.stride(dim);
    element /= tensor.size(dim);
  }
  return offset;
}

template <typename Function, typename In, typename Accumulator>
Accumulator fold(const In* x, const Walk& walk, int64_t count) {
  std::array<Accumulator, kLanes> lanes;
  lanes.fill(Function::template kStart<Accumulator>);
  const auto one = [](In value) -> Accumulator {
    if constexpr (kIsLogical<Function>) {
      return value != In{0} ? 1 : 0;
    } else {
      return static_cast<Accumulator>(value);
    }
  };
  In buffer[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min(kBlock, count - begin);
    const In* from = walk.read(x, begin, block, buffer);
    int64_t k = 0;
    for (; k + kLanes <= block; k += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        Accumulator& sum = lanes[static_cast<size_t>(lane)];
        sum = Function::combine(sum, one(from[k + lane]));
      }
    }
    for (size_t lane = 0; k < block; ++k, ++lane) lanes[lane] = Function::combine(lanes[lane], one(from[k]));
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] = Function::combine(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

struct Params {
  void (*kernel)(const Tensor& x, const Tensor& y, uint32_t mask, ThreadPool& threads);
  uint32_t mask;  // bit d: dimension d is reduced
};

template <typename Function, typename In, typename Out, bool Mean = false>
void reduce(const Tensor& x, const Tensor& y, uint32_t mask, ThreadPool& threads) {
  const Tensor kept = dims_of(x, mask, false), reduced = dims_of(x, mask, true);
  const int64_t count = reduced.num_elements();
  const Sizes sizes = Sizes::of(reduced);
  const Walk walk(reduced, sizes.span());
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(count, 1));
  threads.parallel_for(y.num_elements(), grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      Out value = fold<Function, In, Out>(x.as<In>() + offset_of(kept, i), walk, count);
      if constexpr (Mean) value /= static_cast<Out>(count);
      y.as<Out>()[i] = value;
    }
  });
}

struct Variant {
  DType output;
  decltype(Params::kernel) kernel = nullptr;  // nullptr: this dtype is not accepted
};

// sum and prod: integers and bools give int64, as in PyTorch.
template <typename Function>
Variant accumulate(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return {dtype, reduce<Function, float, float>};
    case DType::kInt64: return {DType::kInt64, reduce<Function, int64_t, int64_t>};
    case DType::kInt32: return {DType::kInt64, reduce<Function, int32_t, int64_t>};
    case DType::kBool: return {DType::kInt64, reduce<Function, uint8_t, int64_t>};
    default: return {};
  }
}

Variant mean(DType dtype) {
  if (dtype != DType::kFloat32) return {};
  return {dtype, reduce<Sum, float, float, true>};
}

template <typename Function>
Variant extreme(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return {dtype, reduce<Function, float, float>};
    case DType::kInt64: return {dtype, reduce<Function, int64_t, int64_t>};
    case DType::kInt32: return {dtype, reduce<Function, int32_t, int32_t>};
    case DType::kBool: return {dtype, reduce<Function, uint8_t, uint8_t>};
    default: return {};
  }
}

template <typename Function>
Variant logical(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return {DType::kBool, reduce<Function, float, uint8_t>};
    case DType::kInt64: return {DType::kBool, reduce<Function, int64_t, uint8_t>};
    case DType::kInt32: return {DType::kBool, reduce<Function, int32_t, uint8_t>};
    case DType::kBool: return {DType::kBool, reduce<Function, uint8_t, uint8_t>};
    default: return {};
  }
}

Status read_dims(const Call& call, const Tensor& x, uint32_t& mask) {
  MOTE_ASSIGN(const auto dims, integers_in(call, "dims", 0, std::max(x.rank, 1) - 1, kMaxRank));
  for (const int64_t dim : dims) {
    MOTE_REQUIRE((mask >> dim & 1u) == 0, Code::kInvalidProgram, "attribute 'dims' repeats %lld: must be distinct",
                 static_cast<long long>(dim));
    mask |= 1u << dim;
  }
  return Status();
}

// needs_elements: the op has no result for zero elements.
Status check_reduction(Call& call, Variant (*variant_of)(DType), const char* accepted, bool needs_elements) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "input 0", {x.dtype}));
  const Variant variant = variant_of(x.dtype);
  MOTE_REQUIRE(variant.kernel != nullptr, Code::kInvalidProgram, "input 0 has dtype %s: must be %s",
               dtype_name(x.dtype), accepted);
  uint32_t mask = 0;
  MOTE_RETURN_IF_ERROR(read_dims(call, x, mask));
  MOTE_ASSIGN(const int64_t keepdim, integer_or(call, "keepdim", 0, 0, 1));
  Sizes sizes;
  for (int dim = 0; dim < x.rank; ++dim) {
    const bool reduced = (mask >> dim & 1u) != 0;
    MOTE_REQUIRE(!reduced || !needs_elements || x.size(dim) > 0, Code::kInvalidProgram,
                 "input 0 has size 0 in the reduced dimension %d: must be at least 1", dim);
    if (!reduced || keepdim == 1) sizes.push(reduced ? 1 : x.size(dim));
  }
  MOTE_RETURN_IF_ERROR(expect_output(call, 0, variant.output, sizes.span()));
  Params& params = call.make_params<Params>();
  params.kernel = variant.kernel;
  params.mask = mask;
  return Status();
}

template <auto VariantOf, bool NeedsElements>
Status check(Call& call) {
  return check_reduction(call, VariantOf, VariantOf == mean ? "float32" : "float32, int64, int32, bool", NeedsElements);
}

Status run(const Call& call, KernelContext& context) {
  const Params& params = call.get_params<Params>();
  params.kernel(*call.inputs[0], *call.outputs[0], params.mask, *context.threads);
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.sum", .check = check<accumulate<Sum>, false>, .run = run, .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.prod", .check = check<accumulate<Prod>, false>, .run = run, .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.mean", .check = check<mean, false>, .run = run, .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.amax", .check = check<extreme<Amax>, true>, .run = run, .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.amin", .check = check<extreme<Amin>, true>, .run = run, .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.any", .check = check<logical<Any>, false>, .run = run, .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.all", .check = check<logical<All>, false>, .run = run, .token_axis = reduced_axis);

}  // namespace mote
