// Elementwise ops of one input.
#include <cmath>

#include "kernels/ops/pointwise/pointwise.h"
#include "kernels/support/math.h"

namespace mote::pointwise {

namespace {

constexpr DType kFloat = DType::kFloat32, kInt = DType::kInt64, kBool = DType::kBool;

template <auto Function>
constexpr Variant of_float() {
  return unary<kFloat, kFloat, Function>();
}
template <auto Function>
constexpr Variant of_int() {
  return unary<kInt, kInt, Function>();
}

float narrow(double value) { return static_cast<float>(value); }
int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
int64_t negate(int64_t x) { return wrap(uint64_t{0} - static_cast<uint64_t>(x)); }

int64_t bound(double value) {
  if (!(value > -0x1p63)) return INT64_MIN;
  return value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MAX;
}

Status read_clamp(const Call& call, Parameters& parameters) {
  MOTE_ASSIGN(parameters.low, number_or(call, "min", -std::numeric_limits<double>::infinity()));
  MOTE_ASSIGN(parameters.high, number_or(call, "max", std::numeric_limits<double>::infinity()));
  return Status();
}

template <typename T>
T clamp(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

Status read_leaky_relu(const Call& call, Parameters& parameters) {
  MOTE_ASSIGN(parameters.low, number_or(call, "negative_slope", 0.01));
  return Status();
}

Status read_elu(const Call& call, Parameters& parameters) {
  MOTE_ASSIGN(parameters.low, number_or(call, "alpha", 1.0));
  return Status();
}

Status read_gelu(const Call& call, Parameters& parameters) {
  MOTE_ASSIGN(parameters.low, choice(call, "approximate", {"none", "tanh"}));
  return Status();
}

float elu(float x, const Parameters& p) { return x > 0 ? x : narrow(p.low * math::expm1(static_cast<double>(x))); }
float leaky_relu(float x, const Parameters& p) { return x > 0 ? x : x * narrow(p.low); }
float softplus(float x) { return x > 20.0f ? x : narrow(math::log1p(math::exp(static_cast<double>(x)))); }
float gelu(float x, const Parameters&) { return math::gelu(x); }
BlockFunction vectorised_gelu(const Vectorised& functions, const Parameters& p) {
  return p.low == 0 ? nullptr : functions.gelu_tanh;
}
float clamp_float(float x, const Parameters& p) { return clamp(x, narrow(p.low), narrow(p.high)); }
int64_t clamp_int(int64_t x, const Parameters& p) { return clamp(x, bound(p.low), bound(p.high)); }

constexpr Row kRows[] = {
    {"aten.neg", {of_float<[](float x) { return -x; }>(), of_int<negate>()}},
    {"aten.abs",
     {of_float<[](float x) { return std::fabs(x); }>(), of_int<[](int64_t x) { return x < 0 ? negate(x) : x; }>()}},
    {"aten.exp", {of_float<[](float x) { return math::exp(x); }>()}, nullptr, member<&Vectorised::exp>},
    {"aten.expm1", {of_float<[](float x) { return narrow(math::expm1(static_cast<double>(x))); }>()}},
    {"aten.log", {of_float<[](float x) { return narrow(math::log(x)); }>()}},
    {"aten.log1p", {of_float<[](float x) { return narrow(math::log1p(x)); }>()}},
    {"aten.log2", {of_float<[](float x) { return narrow(math::log(x) * 1.4426950408889634); }>()}},
    {"aten.sqrt", {of_float<[](float x) { return std::sqrt(x); }>()}},
    {"aten.rsqrt", {of_float<[](float x) { return 1.0f / std::sqrt(x); }>()}},
    {"aten.reciprocal", {of_float<[](float x) { return 1.0f / x; }>()}},
    {"aten.sin", {of_float<[](float x) { return narrow(math::sin_cos(x).sin); }>()}},
    {"aten.cos", {of_float<[](float x) { return narrow(math::sin_cos(x).cos); }>()}},
    {"aten.tanh", {of_float<[](float x) { return math::tanh(x); }>()}, nullptr, member<&Vectorised::tanh>},
    {"aten.sigmoid", {of_float<[](float x) { return math::sigmoid(x); }>()}, nullptr, member<&Vectorised::sigmoid>},
    {"aten.silu", {of_float<[](float x) { return math::silu(x); }>()}, nullptr, member<&Vectorised::silu>},
    {"aten.relu",
     {of_float<[](float x) { return x < 0 ? 0.0f : x; }>(), of_int<[](int64_t x) { return x < 0 ? 0 : x; }>()},
     nullptr,
     member<&Vectorised::relu>},
    {"aten.erf", {of_float<[](float x) { return narrow(math::erf(x)); }>()}},
    {"aten.floor", {of_float<[](float x) { return std::floor(x); }>(), of_int<[](int64_t x) { return x; }>()}},
    {"aten.ceil", {of_float<[](float x) { return std::ceil(x); }>(), of_int<[](int64_t x) { return x; }>()}},
    {"aten.round", {of_float<[](float x) { return math::round_even(x); }>(), of_int<[](int64_t x) { return x; }>()}},
    {"aten.sign",
     {of_float<[](float x) { return static_cast<float>((x > 0) - (x < 0)); }>(),
      of_int<[](int64_t x) { return static_cast<int64_t>((x > 0) - (x < 0)); }>()}},
    {"aten.softplus", {of_float<softplus>()}},
    {"aten.square",
     {of_float<[](float x) { return x * x; }>(),
      of_int<[](int64_t x) { return wrap(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)); }>()},
     nullptr,
     member<&Vectorised::square>},
    {"aten.logical_not",
     {unary<kFloat, kBool, [](float x) { return static_cast<uint8_t>(x == 0); }>(),
      unary<kInt, kBool, [](int64_t x) { return static_cast<uint8_t>(x == 0); }>(),
      unary<kBool, kBool, [](uint8_t x) { return static_cast<uint8_t>(x == 0); }>()}},
    {"aten.bitwise_not",
     {of_int<[](int64_t x) { return ~x; }>(),
      unary<kBool, kBool, [](uint8_t x) { return static_cast<uint8_t>(x == 0); }>()}},
    {"aten.isnan", {unary<kFloat, kBool, [](float x) { return static_cast<uint8_t>(x != x); }>()}},
    {"aten.gelu", {of_float<gelu>()}, read_gelu, vectorised_gelu},
    {"aten.clamp", {of_float<clamp_float>(), of_int<clamp_int>()}, read_clamp},
    {"aten.leaky_relu", {of_float<leaky_relu>()}, read_leaky_relu},
    {"aten.elu", {of_float<elu>()}, read_elu},
};

const bool kRegistered = (register_rows<kRows, 1>(std::make_index_sequence<std::size(kRows)>()), true);

}  // namespace

}  // namespace mote::pointwise
