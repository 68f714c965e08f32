// Draws together what attend.comp left of the splits of one head.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint VALUE_WIDTH = 64;
layout(constant_id = 4) const bool HAS_SINKS = false;
const uint ITEMS = 1;
layout(binding = 0) readonly buffer Parts { float parts[]; };
layout(binding = 1) readonly buffer Positions { uint positions[]; };
layout(binding = 2) readonly buffer Sinks { float sinks[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
#include "softmax.glsl"

// push: heads, tokens, splits that there is room for, window, first positions that are seen in spite of it
void main() {
  uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y, position = positions[token];
  uint first = push[4] != 0 || push[3] == 0 || position < push[3] ? 0 : (position + 1 - push[3]) / 256;
  for (uint pair = gl_LocalInvocationID.x; pair < VALUE_WIDTH / 2; pair += 64) {
    Total total;
    begin(total);
    for (uint split = first; split <= position / 256; ++split) {
      uint at = ((token * push[0] + head) * push[2] + split) * (VALUE_WIDTH + 2);
      add_split(total, 0, parts[at], parts[at + 1], vec2(parts[at + 2 + 2 * pair], parts[at + 3 + 2 * pair]));
    }
    vec2 mean = finish(total, 0, HAS_SINKS, HAS_SINKS ? sinks[head] : 0.0);
    uint to = (token * push[0] + head) * VALUE_WIDTH + 2 * pair;
    y[to] = mean.x;
    y[to + 1] = mean.y;
  }
}
