// Keys and values of the call's tokens into the cache, as float16: two elements a word, a position after the other.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Positions { uint positions[]; };
layout(binding = 2) buffer Cache { uint cache[]; };

#include "half.glsl"

// push: heads, tokens, width, x: offset, stride of a head, of a token
void main() {
  uint index = 64 * group_index() + gl_LocalInvocationID.x;
  uint pairs = push[2] / 2;
  if (index >= push[0] * push[1] * pairs) return;
  uint pair = index % pairs, head = index / pairs % push[0], token = index / pairs / push[0];
  uint begin = push[3] + head * push[4] + token * push[5] + 2 * pair;
  cache[(positions[token] * push[0] + head) * pairs + pair] = half_of(x[begin]) | half_of(x[begin + 1]) << 16;
}
