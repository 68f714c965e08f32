// What comes before an attention over a latent, a workgroup for each token and head: queries are what a matrix of their head made, then
// what is turned; a key is the latent behind its norm, then what is turned, and goes into the cache.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LANES = 64;
layout(constant_id = 2) const uint LAYOUT = 0;  // of rope.comp
layout(constant_id = 3) const uint WIDTH = 64;  // of a key
layout(constant_id = 4) const bool HAS_NORM = false;
layout(constant_id = 5) const bool HAS_WEIGHT = false;
layout(constant_id = 6) const bool Q_IN_PAIRS = false;  // whether the halves of what is turned lie one after the other in turns
layout(constant_id = 7) const bool K_IN_PAIRS = false;

layout(binding = 0) readonly buffer Own { float own[]; };
layout(binding = 1) readonly buffer Q { float queries[]; };
layout(binding = 2) readonly buffer Latent { float latents[]; };
layout(binding = 3) readonly buffer K { float keys[]; };
layout(binding = 4) readonly buffer Positions { uint positions[]; };
layout(binding = 5) readonly buffer Weight { float norm_weight[]; };
layout(binding = 6) readonly buffer Cos { float cosines[]; };
layout(binding = 7) readonly buffer Sin { float sines[]; };
layout(binding = 8) writeonly buffer KeyCache { uint key_cache[]; };
layout(binding = 9) writeonly buffer Y { float y[]; };

#include "half.glsl"
#define TURNED_AT 4
#define TABLES_AT 15
#include "heads.glsl"

uint pair_place(uint i, uint width) { return i < width / 2 ? 2 * i : 2 * (i - width / 2) + 1; }

// In `row` what is turned comes first.
void load(bool is_query, uint head, uint token) {
  uint width = push[2], rest = push[3], lane = gl_LocalInvocationID.x;
  uint first = is_query ? push[5] + head * push[6] + token * push[7] : push[11] + token * push[12];
  uint second = is_query ? push[8] + head * push[9] + token * push[10] : push[13] + token * push[14];
  for (uint k = lane; k < width; k += LANES) row[rest + k] = is_query ? own[first + k] : latents[first + k];
  for (uint k = lane; k < rest; k += LANES) {
    uint at = second + ((is_query ? Q_IN_PAIRS : K_IN_PAIRS) ? pair_place(k, rest) : k);
    row[k] = is_query ? queries[at] : keys[at];
  }
  barrier();
}

void normalize() {
  uint width = push[2], rest = push[3];
  precise float factor = factor_of_norm(rest, width, float_at(19));
  for (uint k = gl_LocalInvocationID.x; k < width; k += LANES) {
    precise float value = row[rest + k] * factor;
    if (HAS_WEIGHT) {
      precise float weight = norm_weight[k] + float_at(20);
      value = value * weight;
    }
    row[rest + k] = value;
  }
  barrier();
}

float element(uint k, uint token) { return k < push[2] ? row[push[3] + k] : turned_at(k - push[2], token); }

// push: heads of queries, tokens, width of the latent, of what is turned, columns that are turned; own, q: offset, stride of a head, of a
//   token each; latent, k: offset, stride of a token each; cos, sin: offset, stride each; eps, what is added to the weight
void main() {
  uint index = group_index(), head = index % (push[0] + 1), token = index / (push[0] + 1), lane = gl_LocalInvocationID.x;
  if (token >= push[1]) return;
  uint width = push[2] + push[3];
  bool is_query = head < push[0];
  load(is_query, head, token);
  if (is_query) {
    for (uint k = lane; k < width; k += LANES) y[(head * push[1] + token) * width + k] = element(k, token);
    return;
  }
  if (HAS_NORM) normalize();
  for (uint pair = lane; pair < width / 2; pair += LANES) {
    key_cache[positions[token] * (width / 2) + pair] = half_of(element(2 * pair, token)) | half_of(element(2 * pair + 1, token)) << 16;
  }
}
