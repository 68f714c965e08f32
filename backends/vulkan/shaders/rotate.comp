// Rows turned or turned back.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool IS_BACK = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) coherent buffer Y { float y[]; };

const uint LANES = 64;
float turn_get(uint k) { return y[k]; }
void turn_set(uint k, float value) { y[k] = value; }
void turn_wait() {
  memoryBarrierBuffer();
  barrier();
}
#include "turn.glsl"

// push: columns, rows, rows of the inner dimension, offset, outer stride, inner stride, columns of a turn, its scale
void main() {
  uint row = group_index();
  if (row >= push[1]) return;
  uint from = push[3] + row / push[2] * push[4] + row % push[2] * push[5], begin = row * push[0];
  for (uint k = gl_LocalInvocationID.x; k < push[0]; k += 64) y[begin + k] = x[from + k];
  turn_wait();
  turn_row(begin, push[0], push[6], float_at(7), IS_BACK);
}
