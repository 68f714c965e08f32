// mote.indexer: what a key scores, for one token and head of keys: the sum over queries of what is positive of their products.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint WIDTH = 64;
layout(constant_id = 1) const uint BLOCK = 1;          // positions, of which the last one's key is scored
layout(constant_id = 2) const bool HAS_WEIGHTS = false;

layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Keys { uint keys[]; };
layout(binding = 2) readonly buffer Positions { uint positions[]; };
layout(binding = 3) readonly buffer Weights { float weights[]; };  // [tokens, heads]
layout(binding = 4) writeonly buffer Scores { float scores[]; };   // [tokens of the dispatch, heads of keys, blocks]

const uint kTogether = 8;  // queries

// push: heads of keys, queries of each, q: offset, stride of a head, of a token; blocks that there is room for, chosen, first token
void main() {
  uint block = 64 * gl_WorkGroupID.x + gl_LocalInvocationID.x, token = push[7] + gl_WorkGroupID.y, kv_head = gl_WorkGroupID.z;
  uint complete = (positions[token] + 1) / BLOCK;
  if (block >= complete || complete <= push[6]) return;
  uint at = ((block * BLOCK + BLOCK - 1) * push[0] + kv_head) * (WIDTH / 2);
  precise float sum = 0.0;
  for (uint first = 0; first < push[1]; first += kTogether) {
    uint count = min(kTogether, push[1] - first), head = kv_head * push[1] + first;
    uint query = push[2] + head * push[3] + token * push[4];
    precise float products[kTogether];
    for (uint h = 0; h < kTogether; ++h) products[h] = 0.0;
    for (uint i = 0; i < WIDTH / 2; ++i) {
      vec2 key = unpackHalf2x16(keys[at + i]);
      for (uint h = 0; h < count; ++h) {
        products[h] = fma(key.x, q[query + h * push[3] + 2 * i], products[h]);
        products[h] = fma(key.y, q[query + h * push[3] + 2 * i + 1], products[h]);
      }
    }
    for (uint h = 0; h < count; ++h) {
      float weight = HAS_WEIGHTS ? weights[token * push[0] * push[1] + head + h] : 1.0;
      sum = sum + weight * (products[h] > 0.0 ? products[h] : 0.0);
    }
  }
  scores[(gl_WorkGroupID.y * push[0] + kv_head) * push[5] + block] = sum;
}
