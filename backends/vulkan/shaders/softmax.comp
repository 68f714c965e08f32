// Softmax of each row, or its logarithm.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
layout(constant_id = 1) const bool IS_LOG = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

shared float parts[64];

float largest_of_row(float value) {
  uint own = gl_LocalInvocationID.x;
  parts[own] = value;
  barrier();
  for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (own_lane() < half_lanes) parts[own] = max(parts[own], parts[own + half_lanes]);
    barrier();
  }
  float result = parts[own - own_lane()];
  barrier();
  return result;
}

float sum_of_row(float value) {
  uint own = gl_LocalInvocationID.x;
  parts[own] = value;
  barrier();
  for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (own_lane() < half_lanes) parts[own] += parts[own + half_lanes];
    barrier();
  }
  return parts[own - own_lane()];
}

void main() {
  uint lane = own_lane(), row = own_row(), columns = row < push[1] ? push[0] : 0, begin = begin_of(row);
  float largest = -kInfinity;
  for (uint k = lane; k < columns; k += LANES) largest = max(largest, x[begin + k * push[6]]);
  largest = largest_of_row(largest);
  precise float sum = 0.0;
  for (uint k = lane; k < columns; k += LANES) sum += exp(x[begin + k * push[6]] - largest);
  sum = sum_of_row(sum);
  for (uint k = lane; k < columns; k += LANES) {
    precise float value = x[begin + k * push[6]] - largest;
    y[row * push[0] + k] = IS_LOG ? value - log(sum) : exp(value) / sum;
  }
}
