// The sum of each row, its mean, largest or smallest element, or product; a lane's elements in ascending order, then lanes by halves.
// FUNCTION: 0: sum, 1: mean, 2: largest, 3: smallest, 4: product
float both_of(uint function, float a, float b) {
  if (function == 4) return a * b;
  if (function < 2) return a + b;
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return function == 2 ? max(a, b) : min(a, b);
}

void reduce_rows(uint group) {
  uint lane = own_lane(), row = own_row(group);
  precise float value = FUNCTION < 2 ? 0.0 : FUNCTION == 2 ? -kInfinity : FUNCTION == 3 ? kInfinity : 1.0;
  if (row < push[1]) {
    uint begin = begin_of(row);
    for (uint k = lane; k < push[0]; k += LANES) {
      value = both_of(FUNCTION, value, uintBitsToFloat(IN_0(begin + k * push[6])));
    }
  }
  parts[gl_LocalInvocationID.x] = value;
  barrier();
  for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) {
      uint own = gl_LocalInvocationID.x;
      parts[own] = both_of(FUNCTION, parts[own], parts[own + half_lanes]);
    }
    barrier();
  }
  if (row >= push[1] || lane != 0) return;
  precise float result = parts[gl_LocalInvocationID.x];
  if (FUNCTION == 1) result = result / float(push[0]);
  OUT_1(row, floatBitsToUint(result));
}
