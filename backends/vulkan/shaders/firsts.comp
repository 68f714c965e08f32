// The largest of every 64 elements of rows of floats, as a key that is the lower the larger the element, with its place;
// of equal ones the first. Elements of a block lie 64 apart, so that neighbours read neighbours.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "largest.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Firsts { uvec2 firsts[]; };

// push: columns, workgroups of a row
void main() {
  uint row = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x, columns = push[0];
  uint begin = gl_WorkGroupID.x * 4096 + lane, end = min(begin + 4096, columns);
  uvec2 first = uvec2(0xffffffffu);
  for (uint k = begin; k < end; k += 64) {
    uint key = key_of(x[row * columns + k]);
    if (key < first.x) first = uvec2(key, k);
  }
  firsts[(row * push[1] + gl_WorkGroupID.x) * 64 + lane] = first;
}
