// Elementwise ops of two inputs of one dtype. Integers wrap; an integer division by zero gives 0.
#include <cmath>

#include "kernels/ops/pointwise/pointwise.h"
#include "kernels/support/math.h"

namespace mote::pointwise {

namespace {

constexpr DType kFloat = DType::kFloat32, kInt = DType::kInt64, kBool = DType::kBool;

template <auto Function>
constexpr Variant of_float() {
  return binary<kFloat, kFloat, Function>();
}
template <auto Function>
constexpr Variant of_int() {
  return binary<kInt, kInt, Function>();
}
template <auto Function>
constexpr Variant of_bool() {
  return binary<kBool, kBool, Function>();
}

int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }
uint8_t truth(bool value) { return value ? 1 : 0; }

int64_t truncated_remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

int64_t remainder(int64_t a, int64_t b) {
  const int64_t rest = truncated_remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrap(uint64_t{0} - bits(a));
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

float remainder(float a, float b) {
  const float rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// As PyTorch and Python divide: the quotient of a - remainder, which is an integer but for rounding.
float floor_divide(float a, float b) {
  if (b == 0) return a / b;
  const float rest = std::fmod(a, b);
  float quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1.0f;
  if (quotient == 0) return std::copysign(0.0f, a / b);
  const float whole = std::floor(quotient);
  return quotient - whole > 0.5f ? whole + 1.0f : whole;
}

float power(float x, float y) {
  if (y == 2.0f) return x * x;
  if (y == 3.0f) return x * x * x;
  if (y == 0.5f) return std::sqrt(x);
  if (y == -0.5f) return 1.0f / std::sqrt(x);
  if (y == -1.0f) return 1.0f / x;
  if (y == 1.0f) return x;
  return static_cast<float>(math::pow(x, y));
}

int64_t power(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : (x == -1 ? (y % 2 == 0 ? 1 : -1) : 0);
  uint64_t result = 1, factor = bits(x);
  for (; y != 0; y >>= 1) {
    if ((y & 1) != 0) result *= factor;
    factor *= factor;
  }
  return wrap(result);
}

template <typename T>
T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

// A comparison or a logical op: every dtype, giving bool.
template <auto Function>
constexpr Row truth_row(std::string_view name) {
  return {name, {binary<kFloat, kBool, Function>(), binary<kInt, kBool, Function>(), binary<kBool, kBool, Function>()}};
}

constexpr Row kRows[] = {
    {"aten.add",
     {of_float<[](float a, float b) { return a + b; }>(),
      of_int<[](int64_t a, int64_t b) { return wrap(bits(a) + bits(b)); }>(),
      of_bool<[](uint8_t a, uint8_t b) { return truth((a | b) != 0); }>()},
     nullptr,
     member<&Vectorised::add>},
    {"aten.sub",
     {of_float<[](float a, float b) { return a - b; }>(),
      of_int<[](int64_t a, int64_t b) { return wrap(bits(a) - bits(b)); }>()},
     nullptr,
     member<&Vectorised::sub>},
    {"aten.mul",
     {of_float<[](float a, float b) { return a * b; }>(),
      of_int<[](int64_t a, int64_t b) { return wrap(bits(a) * bits(b)); }>(),
      of_bool<[](uint8_t a, uint8_t b) { return truth((a & b) != 0); }>()},
     nullptr,
     member<&Vectorised::mul>},
    {"aten.div",
     {of_float<[](float a, float b) { return a / b; }>(),
      binary<kInt, kFloat, [](int64_t a, int64_t b) { return static_cast<float>(a) / static_cast<float>(b); }>()},
     nullptr,
     member<&Vectorised::div>},
    {"aten.pow",
     {of_float<[](float a, float b) { return power(a, b); }>(),
      of_int<[](int64_t a, int64_t b) { return power(a, b); }>()}},
    {"aten.maximum", {of_float<maximum<float>>(), of_int<maximum<int64_t>>(), of_bool<maximum<uint8_t>>()}},
    {"aten.minimum", {of_float<minimum<float>>(), of_int<minimum<int64_t>>(), of_bool<minimum<uint8_t>>()}},
    {"aten.remainder",
     {of_float<[](float a, float b) { return remainder(a, b); }>(),
      of_int<[](int64_t a, int64_t b) { return remainder(a, b); }>()}},
    {"aten.floor_divide",
     {of_float<[](float a, float b) { return floor_divide(a, b); }>(),
      of_int<[](int64_t a, int64_t b) { return floor_divide(a, b); }>()}},
    {"aten.fmod", {of_float<[](float a, float b) { return std::fmod(a, b); }>(), of_int<truncated_remainder>()}},
    truth_row<[](auto a, auto b) { return truth(a == b); }>("aten.eq"),
    truth_row<[](auto a, auto b) { return truth(a != b); }>("aten.ne"),
    truth_row<[](auto a, auto b) { return truth(a < b); }>("aten.lt"),
    truth_row<[](auto a, auto b) { return truth(a <= b); }>("aten.le"),
    truth_row<[](auto a, auto b) { return truth(a > b); }>("aten.gt"),
    truth_row<[](auto a, auto b) { return truth(a >= b); }>("aten.ge"),
    truth_row<[](auto a, auto b) { return truth(a != 0 && b != 0); }>("aten.logical_and"),
    truth_row<[](auto a, auto b) { return truth(a != 0 || b != 0); }>("aten.logical_or"),
    truth_row<[](auto a, auto b) { return truth((a != 0) != (b != 0)); }>("aten.logical_xor"),
    {"aten.bitwise_and",
     {of_int<[](int64_t a, int64_t b) { return a & b; }>(),
      of_bool<[](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a & b); }>()}},
    {"aten.bitwise_or",
     {of_int<[](int64_t a, int64_t b) { return a | b; }>(),
      of_bool<[](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a | b); }>()}},
};

const bool kRegistered = (register_rows<kRows, 2>(std::make_index_sequence<std::size(kRows)>()), true);

}  // namespace

}  // namespace mote::pointwise
