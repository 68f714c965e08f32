// Compiled where XNNPACK's own header is installed: backends/xnnpack/api.h must declare what it declares.
#include <xnnpack.h>

#include <cstddef>
#include <type_traits>

#include "backends/xnnpack/api.h"

namespace mote::xnnpack {
namespace {

// Passed in the same way: what kind of value, how large.
template <typename Ours, typename Theirs>
constexpr bool is_same_argument() {
  return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
         std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
}

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename R, typename... Ours, typename S, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct SameCall<R (*)(Ours...), S (*)(Theirs...)>
    : std::bool_constant<(is_same_argument<R, S>() && ... && is_same_argument<Ours, Theirs>())> {};

#define X(name, parameters) \
  static_assert(SameCall<decltype(Api::name), decltype(&xnn_##name)>::value, "xnn_" #name " has other parameters");
MOTE_XNNPACK_FUNCTIONS(X)
#undef X

#define SAME(ours, theirs) \
  static_assert(static_cast<int>(ours) == static_cast<int>(theirs), #theirs " has another value")
SAME(XnnStatus::kSuccess, xnn_status_success);
SAME(XnnStatus::kUnsupportedHardware, xnn_status_unsupported_hardware);
SAME(XnnStatus::kOutOfMemory, xnn_status_out_of_memory);
SAME(Datatype::kFloat32, xnn_datatype_fp32);
SAME(Datatype::kFloat16, xnn_datatype_fp16);
SAME(Datatype::kChannelwiseInt8, xnn_datatype_qcint8);
SAME(Datatype::kChannelwiseInt4, xnn_datatype_qcint4);
SAME(Datatype::kDynamicInt8, xnn_datatype_qdint8);
SAME(Datatype::kBlockwiseInt4, xnn_datatype_qbint4);
SAME(Unary::kAbs, xnn_unary_abs);
SAME(Unary::kApproximateGelu, xnn_unary_approxgelu);
SAME(Unary::kBankersRounding, xnn_unary_bankers_rounding);
SAME(Unary::kCeiling, xnn_unary_ceiling);
SAME(Unary::kClamp, xnn_unary_clamp);
SAME(Unary::kConvert, xnn_unary_convert);
SAME(Unary::kCosine, xnn_unary_cosine);
SAME(Unary::kElu, xnn_unary_elu);
SAME(Unary::kExp, xnn_unary_exp);
SAME(Unary::kFloor, xnn_unary_floor);
SAME(Unary::kGelu, xnn_unary_gelu);
SAME(Unary::kLeakyRelu, xnn_unary_leaky_relu);
SAME(Unary::kLog, xnn_unary_log);
SAME(Unary::kNegate, xnn_unary_negate);
SAME(Unary::kReciprocalSquareRoot, xnn_unary_reciprocal_square_root);
SAME(Unary::kSigmoid, xnn_unary_sigmoid);
SAME(Unary::kSine, xnn_unary_sine);
SAME(Unary::kSquareRoot, xnn_unary_square_root);
SAME(Unary::kSquare, xnn_unary_square);
SAME(Unary::kTanh, xnn_unary_tanh);
SAME(Binary::kAdd, xnn_binary_add);
SAME(Binary::kSubtract, xnn_binary_subtract);
SAME(Binary::kMultiply, xnn_binary_multiply);
SAME(Binary::kDivide, xnn_binary_divide);
SAME(Binary::kMaximum, xnn_binary_maximum);
SAME(Binary::kMinimum, xnn_binary_minimum);
SAME(kMaxTensorDims, XNN_MAX_TENSOR_DIMS);
SAME(kExtraBytes, XNN_EXTRA_BYTES);
SAME(kInvalidValueId, XNN_INVALID_VALUE_ID);
SAME(kExternalInput, XNN_VALUE_FLAG_EXTERNAL_INPUT);
SAME(kExternalOutput, XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
SAME(kKeepDims, XNN_FLAG_KEEP_DIMS);
SAME(kDontSpinWorkers, XNN_FLAG_YIELD_WORKERS);

#define SAME_FIELD(ours, our_field, theirs, their_field)                                             \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #theirs "." #their_field \
                                                                                    " lies "         \
                                                                                    "elsewhere")
static_assert(sizeof(UnaryParams) == sizeof(xnn_unary_params));
static_assert(sizeof(BinaryParams) == sizeof(xnn_binary_params));
static_assert(sizeof(ExternalValue) == sizeof(xnn_external_value));
SAME_FIELD(ExternalValue, data, xnn_external_value, data);
SAME_FIELD(WeightsCacheKey, kernel, xnn_weights_cache_look_up_key, kernel);
SAME_FIELD(WeightsCacheKey, bias, xnn_weights_cache_look_up_key, bias);
SAME_FIELD(WeightsCacheProvider, look_up, xnn_weights_cache_provider, look_up);
SAME_FIELD(WeightsCacheProvider, reserve_space, xnn_weights_cache_provider, reserve_space);
SAME_FIELD(WeightsCacheProvider, look_up_or_insert, xnn_weights_cache_provider, look_up_or_insert);
SAME_FIELD(WeightsCacheProvider, is_finalized, xnn_weights_cache_provider, is_finalized);
SAME_FIELD(WeightsCacheProvider, offset_to_addr, xnn_weights_cache_provider, offset_to_addr);
SAME_FIELD(WeightsCacheProvider, delete_cache, xnn_weights_cache_provider, delete_cache);
static_assert(sizeof(WeightsCacheProvider) >= sizeof(xnn_weights_cache_provider),
              "a version that calls more functions");

}  // namespace
}  // namespace mote::xnnpack
