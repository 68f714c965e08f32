// Rows turned as docs/ops.md says, "Rotation", or back: signs, then butterflies of neighbours 1, 2, 4 .. apart, then a scale.
// A row whose columns are no power of two has two turns, of its first columns and of its last. To the bit as on the CPU.
// An invocation holds 8 elements at a time, so that three steps of butterflies read and write memory once.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool IS_BACK = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) coherent buffer Y { float y[]; };

void wait() {
  memoryBarrierBuffer();
  barrier();
}

float signed_at(uint k, float value) { return (bitCount(k & (k >> 1)) & 1) == 1 ? -value : value; }

// push: columns, rows, rows of the inner dimension, offset, outer stride, inner stride, columns of a turn, its scale
// `steps` steps of butterflies of columns that are `apart` and more from each other.
#define STEPS(steps)                                                                             \
  for (uint i = gl_LocalInvocationID.x; i < count >> steps; i += 64) {                           \
    uint first = i / apart * (apart << steps) + i % apart;                                       \
    precise float v[1 << steps];                                                                 \
    [[unroll]] for (uint j = 0; j < 1 << steps; ++j) {                                           \
      v[j] = y[begin + first + j * apart];                                                       \
      if (!IS_BACK && apart == 1) v[j] = signed_at(first + j, v[j]);                             \
    }                                                                                            \
    [[unroll]] for (uint step = 1; step < 1 << steps; step *= 2) {                               \
      [[unroll]] for (uint j = 0; j < 1 << steps; ++j) {                                         \
        if ((j & step) == 0) {                                                                   \
          precise float sum = v[j] + v[j + step], difference = v[j] - v[j + step];               \
          v[j] = sum;                                                                            \
          v[j + step] = difference;                                                              \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    bool is_last = apart << steps == count;                                                      \
    [[unroll]] for (uint j = 0; j < 1 << steps; ++j) {                                           \
      uint k = first + j * apart;                                                                \
      precise float scaled = v[j] * float_at(7);                                                 \
      y[begin + k] = !is_last ? v[j] : IS_BACK ? signed_at(k, scaled) : scaled;                  \
    }                                                                                            \
  }                                                                                              \
  wait();

void turn(uint begin) {
  uint count = push[6], apart = 1;
  for (; apart * 8 <= count; apart *= 8) { STEPS(3) }
  if (apart * 4 == count) { STEPS(2) }
  if (apart * 2 == count) { STEPS(1) }
}

void main() {
  uint row = group_index();
  if (row >= push[1]) return;
  uint from = push[3] + row / push[2] * push[4] + row % push[2] * push[5], begin = row * push[0];
  for (uint k = gl_LocalInvocationID.x; k < push[0]; k += 64) y[begin + k] = x[from + k];
  wait();
  uint last = begin + push[0] - push[6];
  turn(IS_BACK ? last : begin);
  if (last != begin) turn(IS_BACK ? begin : last);
}
