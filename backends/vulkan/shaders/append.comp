// Keys and values of the call's tokens into the cache, as float16: two elements a word, a position after the other.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Positions { uint positions[]; };
layout(binding = 2) buffer Cache { uint cache[]; };

// Rounds to nearest, halves to even, which packHalf2x16 need not do.
uint half_of(float value) {
  uint bits = floatBitsToUint(value), sign_bit = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return sign_bit | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u);
  if (magnitude >= 0x477ff000u) return sign_bit | 0x7c00u;
  if (magnitude < 0x38800000u) {  // below the normal ones: multiples of 2^-24
    return sign_bit | uint(roundEven(uintBitsToFloat(magnitude) * 16777216.0));
  }
  uint rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return sign_bit | (rounded - 0x38000000u) >> 13;
}

// push: heads, tokens, width, x: offset, stride of a head, of a token
void main() {
  uint index = 64 * group_index() + gl_LocalInvocationID.x;
  uint pairs = push[2] / 2;
  if (index >= push[0] * push[1] * pairs) return;
  uint pair = index % pairs, head = index / pairs % push[0], token = index / pairs / push[0];
  uint begin = push[3] + head * push[4] + token * push[5] + 2 * pair;
  cache[(positions[token] * push[0] + head) * pairs + pair] = half_of(x[begin]) | half_of(x[begin + 1]) << 16;
}
