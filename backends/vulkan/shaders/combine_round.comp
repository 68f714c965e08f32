// combine.comp and quantize.comp in one, for a single token: what attend.comp left of the splits of all heads, drawn together and
// rounded for the product that reads it.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x_id = 6) in;
layout(constant_id = 2) const uint VALUE_WIDTH = 64;
layout(constant_id = 4) const bool HAS_SINKS = false;
const uint ITEMS = 1;

layout(binding = 0) readonly buffer Parts { float parts[]; };
layout(binding = 1) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = 2) writeonly buffer Codes { uint new_codes[]; };
layout(binding = 3) writeonly buffer Rows { uvec2 new_rows[]; };
layout(binding = 4) writeonly buffer Sums { uint new_sums[]; };
layout(binding = 5) coherent buffer Turned { float turned[]; };
layout(binding = 6) readonly buffer Positions { uint positions[]; };
layout(binding = 7) readonly buffer Sinks { float sinks[]; };
#include "softmax.glsl"

float turn_get(uint k);
float source(uint k) { return turn_get(k); }
#define QUANTIZED_AT 8
#include "quantize.glsl"

// push: splits that there is room for, window, first positions that are seen in spite of it; from 8 on as quantize.glsl says
void main() {
  uint position = positions[0];
  uint first = push[2] != 0 || push[1] == 0 || position < push[1] ? 0 : (position + 1 - push[1]) / 256;
  kept_row = 0;
  for (uint i = gl_LocalInvocationID.x; i < push[QUANTIZED_AT] / 2; i += LANES) {
    uint head = 2 * i / VALUE_WIDTH, pair = i % (VALUE_WIDTH / 2);
    Total total;
    begin(total);
    for (uint split = first; split <= position / 256; ++split) {
      uint at = (head * push[0] + split) * (VALUE_WIDTH + 2);
      add_split(total, 0, parts[at], parts[at + 1], vec2(parts[at + 2 + 2 * pair], parts[at + 3 + 2 * pair]));
    }
    vec2 mean = finish(total, 0, HAS_SINKS, HAS_SINKS ? sinks[head] : 0.0);
    turn_set(2 * i, mean.x);
    turn_set(2 * i + 1, mean.y);
  }
  turn_wait();
  quantize_row(0);
}
