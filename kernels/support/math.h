// Elementary functions of our own: the same bits on every machine, which libm does not promise. Products and sums are
// never contracted (-ffp-contract=off).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace mote::math {

// e^x within 1.5 ulp, 0 or infinity beyond float32's range; NaN stays NaN. Compilers can vectorise loops that call it.
inline float exp(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float shifted = x * 1.44269504088896341f + kShift;
  const float n = shifted - kShift;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9841270e-4f;
  p = p * r + 1.3888889e-3f;
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  const int32_t exponent = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kShift));
  const int32_t half = exponent >> 1;  // two factors, so that results below the normal range round once
  const float a = std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23);
  const float b = std::bit_cast<float>(static_cast<uint32_t>(exponent - half + 127) << 23);
  return p * a * b;
}

// e^x in double, relative error below 1e-15 in the normal range.
inline double exp(double x) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
  x = x > 710.0 ? 710.0 : x;
  x = x < -745.0 ? -745.0 : x;
  const double shifted = x * 1.4426950408889634 + kShift;
  const double n = shifted - kShift;
  const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  const int64_t exponent = static_cast<int64_t>(std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(kShift));
  const int64_t half = exponent >> 1;
  const double a = std::bit_cast<double>(static_cast<uint64_t>(half + 1023) << 52);
  const double b = std::bit_cast<double>(static_cast<uint64_t>(exponent - half + 1023) << 52);
  return p * a * b;
}

// e^x - 1 in double: a series near 0, where the difference would cancel.
inline double expm1(double x) {
  double p = 1.0 / 5040.0;
  p = p * x + 1.0 / 720.0;
  p = p * x + 1.0 / 120.0;
  p = p * x + 1.0 / 24.0;
  p = p * x + 1.0 / 6.0;
  p = p * x + 0.5;
  const double small = x + x * x * p;
  return x > -0.03 && x < 0.03 ? small : exp(x) - 1.0;
}

inline float tanh(float x) {
  const double magnitude = x < 0 ? -static_cast<double>(x) : static_cast<double>(x);
  const double e = expm1(2.0 * (magnitude > 20.0 ? 20.0 : magnitude));
  const float result = static_cast<float>(e / (e + 2.0));
  return x < 0 ? -result : result;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
inline float silu(float x) { return x / (1.0f + exp(-x)); }

// ln x in double: x = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh((m - 1) / (m + 1)).
inline double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x > std::numeric_limits<double>::max()) return x;
  const double scaled = x < 0x1p-1000 ? x * 0x1p100 : x;
  const uint64_t bits = std::bit_cast<uint64_t>(scaled) - 0x3fe6a09e667f3bcdu;  // from sqrt(1/2)
  const int64_t exponent = static_cast<int64_t>(bits) >> 52;
  const double m = std::bit_cast<double>((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
  const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
  double p = 1.0 / 19.0;
  p = p * s2 + 1.0 / 17.0;
  p = p * s2 + 1.0 / 15.0;
  p = p * s2 + 1.0 / 13.0;
  p = p * s2 + 1.0 / 11.0;
  p = p * s2 + 1.0 / 9.0;
  p = p * s2 + 1.0 / 7.0;
  p = p * s2 + 1.0 / 5.0;
  p = p * s2 + 1.0 / 3.0;
  const double e = static_cast<double>(exponent) - (x < 0x1p-1000 ? 100.0 : 0.0);
  return e * 6.93147180559945286227e-01 + (2.0 * s + 2.0 * s * s2 * p);
}

// Rounds to the nearest integer, halves to even. NaN and magnitudes of 2^23 and more are returned as they are.
inline float round_even(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float shifted = (magnitude + 8388608.0f) - 8388608.0f;
  const float rounded =
      std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) | (std::bit_cast<uint32_t>(x) & 0x80000000u));
  return magnitude < 8388608.0f ? rounded : x;
}

struct SinCos {
  double sin;
  double cos;
};
// Right for every finite angle: large ones are reduced with as many bits of 2/pi as they need. NaN for infinity and
// NaN.
SinCos sin_cos(float angle);
double erf(double x);  // relative error below 1e-12
double log1p(double x);
double pow(double x, double y);  // special cases as in C; relative error below 1e-12

inline float gelu(float x) { return static_cast<float>(0.5 * x * (1.0 + erf(x * 0.70710678118654752440))); }
inline float gelu_tanh(float x) { return 0.5f * x * (1.0f + tanh(0.7978845608028654f * (x + 0.044715f * x * x * x))); }

}  // namespace mote::math
