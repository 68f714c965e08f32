// Rounds to nearest, halves to even, which packHalf2x16 need not do.
uint half_of(float value) {
  uint bits = floatBitsToUint(value), sign_bit = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return sign_bit | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u);
  if (magnitude >= 0x477ff000u) return sign_bit | 0x7c00u;
  if (magnitude < 0x38800000u) {  // below the normal ones: multiples of 2^-24
    return sign_bit | uint(roundEven(uintBitsToFloat(magnitude) * 16777216.0));
  }
  uint rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return sign_bit | (rounded - 0x38000000u) >> 13;
}
