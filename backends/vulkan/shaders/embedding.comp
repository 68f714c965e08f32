// Rows of a table, as floats. Those of other pieces of the table are left alone.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "tiles.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 6) const uint DENSE = 0;
layout(binding = 0) readonly buffer Ids { uint ids[]; };
layout(binding = 1) readonly buffer Weight { uint weight[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
#include "elements.glsl"

// push: columns, tokens, rows of the piece, its first row, rows of the table; beyond them: NaN
void main() {
  uint token = group_index();
  if (token >= push[1]) return;
  uint id = ids[token] - push[3];
  bool is_known = ids[token] < push[4];
  if (id >= push[2] && is_known) return;
  for (uint k = gl_LocalInvocationID.x; k < push[0]; k += 64) {
    y[token * push[0] + k] = is_known ? element(id, k) : uintBitsToFloat(0x7fc00000u);
  }
}
