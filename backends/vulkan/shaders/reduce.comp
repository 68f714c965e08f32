// The sum of each row, its mean, largest or smallest element, or product; a lane's elements in ascending order, then lanes by halves.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
layout(constant_id = 1) const uint FUNCTION = 0;  // 0: sum, 1: mean, 2: largest, 3: smallest, 4: product
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

shared float parts[64];

bool is_nan(float value) { return (floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u; }

float both(float a, float b) {
  if (FUNCTION == 4) return a * b;
  if (FUNCTION < 2) return a + b;
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return FUNCTION == 2 ? max(a, b) : min(a, b);
}

void main() {
  uint lane = own_lane(), row = own_row();
  precise float value = FUNCTION < 2 ? 0.0 : FUNCTION == 2 ? -kInfinity : FUNCTION == 3 ? kInfinity : 1.0;
  if (row < push[1]) {
    uint begin = begin_of(row);
    for (uint k = lane; k < push[0]; k += LANES) value = both(value, x[begin + k * push[6]]);
  }
  parts[gl_LocalInvocationID.x] = value;
  barrier();
  for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) {
      uint own = gl_LocalInvocationID.x;
      parts[own] = both(parts[own], parts[own + half_lanes]);
    }
    barrier();
  }
  if (row >= push[1] || lane != 0) return;
  precise float result = parts[gl_LocalInvocationID.x];
  y[row] = FUNCTION == 1 ? result / float(push[0]) : result;
}
