// For each element of `index` what lies there along an axis of `x`; negative ones count from its end. Beyond it: NaN.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Index { int indices[]; };
layout(binding = 2) writeonly buffer Y { uint y[]; };

// push: 4 sizes; x: offset and 4 strides, that of the axis 0; index: the same; size and stride of the axis
void main() {
  uint element = 64 * group_index() + gl_LocalInvocationID.x, rest = element, from = push[4], at = push[9];
  if (element >= push[0] * push[1] * push[2] * push[3]) return;
  for (int axis = 3; axis >= 0; --axis) {
    uint i = rest % push[axis];
    rest /= push[axis];
    from += i * push[5 + axis];
    at += i * push[10 + axis];
  }
  int place = indices[at], size = int(push[14]);
  if (place < 0) place += size;
  y[element] = place >= 0 && place < size ? x[from + uint(place) * push[15]] : 0x7fc00000u;
}
