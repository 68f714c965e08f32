// What comes before an attention, a workgroup for each token and head: queries and keys behind their norms and turned, and keys and
// values into the caches.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LANES = 64;
layout(constant_id = 2) const uint LAYOUT = 0;  // of rope.comp; 3: nothing is turned
layout(constant_id = 3) const uint WIDTH = 64;  // of the widest head
layout(constant_id = 4) const bool Q_HAS_NORM = false;
layout(constant_id = 5) const bool Q_HAS_WEIGHT = false;
layout(constant_id = 6) const bool K_HAS_NORM = false;
layout(constant_id = 7) const bool K_HAS_WEIGHT = false;

layout(binding = 0) readonly buffer Q { float queries[]; };
layout(binding = 1) readonly buffer K { float keys[]; };
layout(binding = 2) readonly buffer V { float values[]; };
layout(binding = 3) readonly buffer Positions { uint positions[]; };
layout(binding = 4) readonly buffer QWeight { float q_weight[]; };
layout(binding = 5) readonly buffer KWeight { float k_weight[]; };
layout(binding = 6) readonly buffer Cos { float cosines[]; };
layout(binding = 7) readonly buffer Sin { float sines[]; };
layout(binding = 8) writeonly buffer KeyCache { uint key_cache[]; };
layout(binding = 9) writeonly buffer ValueCache { uint value_cache[]; };
layout(binding = 10) writeonly buffer Y { float y[]; };

#include "half.glsl"

#define TURNED_AT 5
#define TABLES_AT 15
#include "heads.glsl"

// numbers: eps, what is added to the weight
void normalize(uint width, uint numbers, bool is_query) {
  precise float factor = factor_of_norm(0, width, float_at(numbers));
  bool has_weight = is_query ? Q_HAS_WEIGHT : K_HAS_WEIGHT;
  for (uint k = gl_LocalInvocationID.x; k < width; k += LANES) {
    precise float value = row[k] * factor;
    if (has_weight) {
      precise float weight = (is_query ? q_weight[k] : k_weight[k]) + float_at(numbers + 1);
      value = value * weight;
    }
    row[k] = value;
  }
  barrier();
}

// push: heads of queries, of keys; tokens, width, width of a value, columns that are turned; q, k, v: offset, stride of a head, of a
//   token each; cos, sin: offset, stride each; q, k: eps and what is added to the weight each
void main() {
  uint heads = push[0] + 2 * push[1], index = group_index(), head = index % heads, token = index / heads;
  if (token >= push[2]) return;
  bool is_query = head < push[0], is_value = head >= push[0] + push[1];
  if (!is_query) head -= is_value ? push[0] + push[1] : push[0];
  uint words = is_query ? 6 : is_value ? 12 : 9, width = is_value ? push[4] : push[3];
  uint begin = push[words] + head * push[words + 1] + token * push[words + 2], lane = gl_LocalInvocationID.x;
  if (is_query) {
    for (uint k = lane; k < width; k += LANES) row[k] = queries[begin + k];
  } else if (is_value) {
    for (uint k = lane; k < width; k += LANES) row[k] = values[begin + k];
  } else {
    for (uint k = lane; k < width; k += LANES) row[k] = keys[begin + k];
  }
  barrier();
  if (is_query) {
    if (Q_HAS_NORM) normalize(width, 19, true);
    uint to = (head * push[2] + token) * width;
    for (uint k = lane; k < width; k += LANES) y[to + k] = turned_at(k, token);
    return;
  }
  uint to = (positions[token] * push[1] + head) * (width / 2);
  if (is_value) {
    for (uint pair = lane; pair < width / 2; pair += LANES) {
      value_cache[to + pair] = half_of(row[2 * pair]) | half_of(row[2 * pair + 1]) << 16;
    }
    return;
  }
  if (K_HAS_NORM) normalize(width, 21, false);
  for (uint pair = lane; pair < width / 2; pair += LANES) {
    key_cache[to + pair] = half_of(turned_at(2 * pair, token)) | half_of(turned_at(2 * pair + 1, token)) << 16;
  }
}
