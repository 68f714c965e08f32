// mote.short_conv: rows of the call, and before them those of earlier positions from a ring, which takes the call's rows too. None of
// them lies where one that is still read lies: the ring has room for both.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool HAS_BIAS = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weight { float weight[]; };
layout(binding = 2) readonly buffer Bias { float bias[]; };
layout(binding = 3) readonly buffer Start { uint start; };  // the position of the call's first row
layout(binding = 4) buffer Ring { float ring[]; };
layout(binding = 5) writeonly buffer Y { float y[]; };

// push: columns, rows, length, rows of the ring, x: offset and stride of a row
void main() {
  uint index = 64 * group_index() + gl_LocalInvocationID.x, columns = push[0], length = push[2];
  if (index >= columns * push[1]) return;
  uint column = index % columns, row = index / columns;
  precise float sum = 0.0;
  for (uint j = 0; j < length; ++j) {
    uint behind = length - 1 - j;
    float value = 0.0;
    if (behind <= row) {
      value = x[push[4] + (row - behind) * push[5] + column];
    } else if (start + row >= behind) {
      value = ring[(start + row - behind) % push[3] * columns + column];
    }
    sum = fma(weight[column * length + j], value, sum);
  }
  ring[(start + row) % push[3] * columns + column] = x[push[4] + row * push[5] + column];
  y[index] = HAS_BIAS ? sum + bias[column] : sum;
}
