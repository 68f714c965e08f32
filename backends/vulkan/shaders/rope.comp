// mote.rope: products and sums are not fused.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint LAYOUT = 0;  // 0: half, 1: half_flipped, 2: interleaved
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Cos { float cosines[]; };
layout(binding = 2) readonly buffer Sin { float sines[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

// push: heads, tokens, width, columns that are turned, x: offset, stride of a head, of a token; cos: offset, stride; sin
void main() {
  uint index = 64 * group_index() + gl_LocalInvocationID.x;
  uint tokens = push[1], width = push[2], turned = push[3];
  if (index >= push[0] * tokens * width) return;
  uint i = index % width, token = index / width % tokens, head = index / width / tokens;
  uint begin = push[4] + head * push[5] + token * push[6];
  precise float value = x[begin + i];
  if (i < turned) {
    bool is_first = LAYOUT == 2 ? i % 2 == 0 : i < turned / 2;
    uint other = LAYOUT == 2 ? i ^ 1u : is_first ? i + turned / 2 : i - turned / 2;
    bool is_negative = LAYOUT == 1 ? !is_first : is_first;
    precise float a = value * cosines[push[7] + token * push[8] + i];
    precise float b = x[begin + other] * sines[push[9] + token * push[10] + i];
    value = is_negative ? a - b : a + b;
  }
  y[index] = value;
}
