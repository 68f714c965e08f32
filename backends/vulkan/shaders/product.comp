// mote.linear and mote.gated_linear over tiles with int8 activations: sums of integers are exact, and scaled in the order
// of docs/ops.md. An invocation makes 4 rows for TOKENS tokens, so that codes which it has read serve 16 products; 4 of them
// make the 16 rows of a block, and SPLITS times as many share its groups. A workgroup has BLOCKS blocks.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "gates.glsl"
#include "tiles.glsl"
layout(local_size_x_id = 6) in;  // 4 * BLOCKS * SPLITS
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(constant_id = 4) const bool HAS_RESIDUAL = false;
layout(constant_id = 5) const uint GATE = 0;
layout(constant_id = 7) const uint BLOCKS = 4;
layout(constant_id = 8) const uint SPLITS = 4;

layout(binding = 0) readonly buffer Codes { uvec4 codes[]; };  // of 8 columns
layout(binding = 1) readonly buffer Rows { uvec2 rows[]; };
layout(binding = 2) readonly buffer Sums { uint sums[]; };
layout(binding = 3) readonly buffer Weight { uvec4 weight[]; };  // of 4 rows
layout(binding = 4) readonly buffer RowSums { int row_sums[]; };
layout(binding = 5) readonly buffer Bias { float bias[]; };
layout(binding = 6) readonly buffer Residual { float residual[]; };
layout(binding = 7) writeonly buffer Y { float y[]; };

#include "experts.glsl"

#define EACH_TOKEN [[unroll]] for (uint t = 0; t < TOKENS; ++t)

shared ivec4 parts[SPLITS > 1 ? 4 * BLOCKS * SPLITS * TOKENS : 1];

ivec4 totals[TOKENS];  // of the group
ivec4 exact[TOKENS];   // of the rows
uint tokens[TOKENS];   // of the call; those behind its end repeat the last one

// A word of a plane holds neighbouring columns of a row: for each h the digits of 4 of them, a byte each.
uvec4 paired(uvec4 digits, uint shift, uint mask, uvec2 q) {
  return (digits >> shift & mask) * q.x + (digits >> (shift + 8) & mask) * q.y;
}

// The products of the digits of one plane. at: in quads of words   first: octet of columns
void add_plane(uint plane, uint at, uint first, uint octets, uint shift) {
  uint mask = ((1u << plane) - 1) * 0x00010001u;
  if (plane == 8) {
    for (uint pair = 0; pair < GROUP / 8; ++pair) {
      uvec4 low = weight[at + 8 * pair], high = weight[at + 8 * pair + 4];
      EACH_TOKEN {
        uvec4 q = codes[tokens[t] * octets + first + pair];
        totals[t] += ivec4((low & 0xff) * (q.x >> 16) + (low >> 8 & 0xff) * (q.y >> 16) + (low >> 16 & 0xff) * (q.x & 0xffff) +
                           (low >> 24) * (q.y & 0xffff));
        totals[t] += ivec4((high & 0xff) * (q.z >> 16) + (high >> 8 & 0xff) * (q.w >> 16) +
                           (high >> 16 & 0xff) * (q.z & 0xffff) + (high >> 24) * (q.w & 0xffff));
      }
    }
    return;
  }
  for (uint word = 0; word < GROUP * plane / 32; ++word) {
    uvec4 digits = weight[at + 4 * word];
    EACH_TOKEN {
      uvec4 sum = uvec4(0);
      [[unroll]] for (uint h = 0; h < 8 / plane; h += 2) {
        uvec4 q = codes[tokens[t] * octets + first + (word * (8 / plane) + h) / 2];
        sum += paired(digits, plane * h, mask, q.xy) + paired(digits, plane * (h + 1), mask, q.zw);
      }
      totals[t] += ivec4(sum >> 16 << shift);
    }
  }
}

void multiply(uint block, uint quad, uint split) {
  uint columns = push[0], octets = columns / 8, begin = (first_block() + block) * (block_words(columns) / 4);
  EACH_TOKEN exact[t] = ivec4(0);
  for (uint group = split; group < columns / GROUP; group += SPLITS) {
    EACH_TOKEN totals[t] = ivec4(0);
    uint at = begin + group * (kTileWords / 4) + quad, first = group * (GROUP / 8);
    add_plane(kPlane0, at, first, octets, 0);
    if (kPlane1 != 0) add_plane(max(kPlane1, 1), at + 4 * GROUP * kPlane0 / 32, first, octets, kPlane0);
    if (kPlane2 != 0) {
      add_plane(max(kPlane2, 1), at + 4 * GROUP * (kPlane0 + kPlane1) / 32, first, octets, kPlane0 + kPlane1);
    }
    int word = int(weight[at - quad + kCodeWords / 4][quad]);
    ivec4 multipliers = ivec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8), bitfieldExtract(word, 16, 8), word >> 24);
    EACH_TOKEN {
      int sum = 0;
      [[unroll]] for (uint i = 0; i < GROUP / 32; ++i) {
        sum += int(sums[tokens[t] * (columns / 32) + group * (GROUP / 32) + i]);
      }
      exact[t] += multipliers * (BITS == 1 ? 2 * totals[t] - sum : totals[t] - code_offset() * sum);
    }
  }
}

// The sums of all splits, which the first of them gets.
void join(uint place, uint split) {
  if (SPLITS == 1) return;
  barrier();
  EACH_TOKEN parts[(split * TOKENS + t) * 4 * BLOCKS + place] = exact[t];
  barrier();
  if (split != 0) return;
  for (uint other = 1; other < SPLITS; ++other) {
    EACH_TOKEN exact[t] += parts[(other * TOKENS + t) * 4 * BLOCKS + place];
  }
}

vec4 finished(uint block, uint quad, uint t) {
  uint first = push[3] + 16 * block + 4 * quad;
  uvec2 of_row = rows[tokens[t]];
  uint scales = (first_block() + block) * (block_words(push[0]) / 4) + push[0] / GROUP * (kTileWords / 4) + quad;
  uint sums_at = first + (PAIRS == 0 ? 0 : 16 * expert * push[19]);
  ivec4 sums_of_codes = ivec4(row_sums[sums_at], row_sums[sums_at + 1], row_sums[sums_at + 2], row_sums[sums_at + 3]);
  precise vec4 scaled = uintBitsToFloat(weight[scales]) * vec4(exact[t] - (128 + int(of_row.y)) * sums_of_codes);
  precise vec4 value = uintBitsToFloat(of_row.x) * scaled;
  if (HAS_BIAS) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      if (first + i < push[8]) value[i] = value[i] + bias[first_bias() + first + i];
    }
  }
  return value;
}

// push: columns, tokens, rows, first row of the piece, columns of y, residual: offset and stride of a token,
//   blocks to the rows of `up`, rows of the weight
void main() {
  uint lane = gl_LocalInvocationID.x, place = SPLITS == 1 ? lane : lane % (4 * BLOCKS);
  uint split = SPLITS == 1 ? 0 : lane / (4 * BLOCKS), quad = place % 4;
  uint last_block = (push[2] - push[3] + 15) / 16 - 1;
  uint own = gl_WorkGroupID.x * BLOCKS + place / 4, block = min(own, last_block);
  if (!choose(gl_WorkGroupID.y * TOKENS)) return;
  EACH_TOKEN tokens[t] = input_of(min(gl_WorkGroupID.y * TOKENS + t, push[1] - 1));
  multiply(block, quad, split);
  join(place, split);
  vec4 gates[TOKENS];
  if (GATE != 0) {
    EACH_TOKEN {
      vec4 gate = finished(block, quad, t);
      gates[t] = vec4(gate_of(GATE, gate.x), gate_of(GATE, gate.y), gate_of(GATE, gate.z), gate_of(GATE, gate.w));
    }
    multiply(block + push[7], quad, split);
    join(place, split);
  }
  if (split != 0 || own != block) return;
  uint first = push[3] + 16 * block + 4 * quad;
  EACH_TOKEN {
    uint token = gl_WorkGroupID.y * TOKENS + t;
    if (token < push[1]) {
      precise vec4 value = finished(block + (GATE != 0 ? push[7] : 0), quad, t);
      if (GATE != 0) value = gates[t] * value;
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        if (first + i < push[2]) {
          precise float each = value[i];
          if (HAS_RESIDUAL) each = each + residual[push[5] + token * push[6] + first + i];
          y[token * push[4] + first + i] = each;
        }
      }
    }
  }
}
