// a b + c, rounded once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace mote {

[[gnu::always_inline]] inline float fused_multiply_add(float a, float b, float c) {
#if defined(__MINGW32__)                              // whose std::fma of float rounds to double and then to float
  const double product = static_cast<double>(a) * b;  // exact
  const double sum = product + c;
  const double rest = sum - product;
  const double lost = (product - (sum - rest)) + (c - rest);  // exact; a NaN if the sum is no number
  // To the neighbour whose last bit is 1 if something was lost: rounding that to float is rounding the exact sum.
  auto bits = std::bit_cast<int64_t>(sum);
  if ((lost > 0 || lost < 0) && (bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1 : -1;
  return static_cast<float>(std::bit_cast<double>(bits));
#else
  return std::fma(a, b, c);
#endif
}

}  // namespace mote
