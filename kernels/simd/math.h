// exp and what follows from it for 16 floats at once, without libm: the same bits on every CPU.
#pragma once

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

// e^x, relative error below 1.3e-7 where the result is normal; below -87.33654 the result is 0, above 88.72284
// infinity; NaN stays NaN. Source: reduction by ln 2 in two parts (Cody and Waite); 1 + r + r^2 p(r), where p
// interpolates at the Chebyshev nodes of [-ln 2 / 2, ln 2 / 2].
MOTE_INLINE F32x16 exp(F32x16 x) {
  const F32x16 low = splat(-87.33654f);
  const F32x16 clamped = max(low, min(splat(89.0f), x));  // in this order both give x for a NaN
  const I32x16 n = round_to_i32(clamped * splat(1.44269504f));
  const F32x16 whole = to_f32(n);
  const F32x16 r = fnma(whole, splat(-2.12194440e-4f), fnma(whole, splat(0.693359375f), clamped));
  F32x16 p = fma(splat(1.392640057e-3f), r, splat(8.363353088e-3f));
  p = fma(p, r, splat(4.166655242e-2f));
  p = fma(p, r, splat(1.666657627e-1f));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r * r, r) + splat(1.0f);
  // 2^n in two factors, because 2^128 does not exist.
  const I32x16 half = shift_right<1>(n);
  const F32x16 a = bits_to_f32(shift_left<23>(half + splat_i32(127)));
  const F32x16 b = bits_to_f32(shift_left<23>(n - half + splat_i32(127)));
  return select_less(x, low, splat(0.0f), p * a * b);
}

// Relative errors below 4e-7 where e^-x is finite; below -88.72284 they give 0 and -0.
MOTE_INLINE F32x16 sigmoid(F32x16 x) { return splat(1.0f) / (splat(1.0f) + exp(splat(0.0f) - x)); }
MOTE_INLINE F32x16 silu(F32x16 x) { return x / (splat(1.0f) + exp(splat(0.0f) - x)); }

// Relative error below 4e-7: a polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel.
MOTE_INLINE F32x16 tanh(F32x16 x) {
  const F32x16 magnitude = max(x, splat(0.0f) - x);
  const F32x16 large = splat(1.0f) - splat(2.0f) / (exp(magnitude + magnitude) + splat(1.0f));
  // Source: Cephes tanhf, |x| < 0.625.
  const F32x16 s = x * x;
  F32x16 p = fma(splat(-5.70498872745e-3f), s, splat(2.06390887954e-2f));
  p = fma(p, s, splat(-5.37397155531e-2f));
  p = fma(p, s, splat(1.33314422036e-1f));
  p = fma(p, s, splat(-3.33332819422e-1f));
  const F32x16 small = x * fma(p, s, splat(1.0f));
  const F32x16 with_sign = select_less(x, splat(0.0f), splat(0.0f) - large, large);
  return select_less(magnitude, splat(0.625f), small, with_sign);
}

// Absolute error below 4e-7 |x|; the relative error is larger where x is far below 0 and 1 + tanh cancels.
MOTE_INLINE F32x16 gelu_tanh(F32x16 x) {
  const F32x16 inner = splat(0.7978845608f) * fma(splat(0.044715f) * x * x, x, x);
  return splat(0.5f) * x * (splat(1.0f) + tanh(inner));
}

}  // namespace MOTE_ISA
}  // namespace mote
