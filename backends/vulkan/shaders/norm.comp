// mote.rms_norm and mote.layer_norm, and the norms that are parts of linears. Element k is added in lane k % 64, of a linear's norm in
// lane k % 16, as on the CPU.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KIND = 0;  // 0: rms, 1: layer, 2: rms of a linear
layout(constant_id = 1) const bool HAS_WEIGHT = false;
layout(constant_id = 2) const bool HAS_BIAS = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weight { float norm_weight[]; };
layout(binding = 2) readonly buffer Bias { float bias[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

const bool IS_LAYER = KIND == 1;
const uint kLanes = KIND == 2 ? 16 : 64;

shared float lanes[64];

float total() {
  if (KIND == 2) {
    precise float sixteen = SUM_16_LANES(lanes);
    return sixteen;
  }
  float l[16];
  for (uint i = 0; i < 16; ++i) {
    precise float even = lanes[i] + lanes[32 + i], odd = lanes[16 + i] + lanes[48 + i];
    precise float sum = even + odd;
    l[i] = sum;
  }
  precise float all = SUM_16_LANES(l);
  return all;
}

// push: columns, rows, rows of the inner dimension, offset, outer stride, inner stride, eps, what is added to the weight
void main() {
  uint row = group_index(), lane = gl_LocalInvocationID.x;
  if (row >= push[1]) return;
  uint columns = push[0], begin = push[3] + row / push[2] * push[4] + row % push[2] * push[5];
  precise float mean = 0.0, sum = 0.0;
  if (IS_LAYER) {
    for (uint k = lane; k < columns; k += 64) sum = x[begin + k] + sum;
    lanes[lane] = sum;
    barrier();
    mean = total() / float(columns);
    sum = 0.0;
    barrier();
  }
  for (uint k = lane; k < columns && lane < kLanes; k += kLanes) {
    precise float value = IS_LAYER ? x[begin + k] - mean : x[begin + k];
    sum = fma(value, value, sum);
  }
  lanes[lane] = sum;
  barrier();
  precise float root = sqrt(total() / float(columns) + float_at(6));
  precise float factor = 1.0 / root;
  for (uint k = lane; k < columns; k += 64) {
    precise float value = IS_LAYER ? x[begin + k] - mean : x[begin + k];
    value = value * factor;
    if (HAS_WEIGHT) {
      precise float weight = norm_weight[k] + float_at(7);
      value = value * weight;
    }
    if (HAS_BIAS) value = value + bias[k];
    y[row * columns + k] = value;
  }
}
