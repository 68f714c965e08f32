// Rows of a table, as floats. Those of other pieces of the table are left alone.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "tiles.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 6) const uint DENSE = 0;
layout(binding = 0) readonly buffer Ids { uvec2 ids[]; };
layout(binding = 1) readonly buffer Weight { uint weight[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
#include "elements.glsl"

// push: columns, tokens, rows of the piece, its first row
void main() {
  uint token = group_index();
  if (token >= push[1]) return;
  uint id = ids[token].x - push[3];
  if (id >= push[2]) return;
  for (uint k = gl_LocalInvocationID.x; k < push[0]; k += 64) y[token * push[0] + k] = element(id, k);
}
