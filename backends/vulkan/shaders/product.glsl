// mote.linear and mote.gated_linear over tiles with int8 activations: sums of integers are exact, and scaled in the order
// of docs/ops.md. An invocation makes 4 rows for TOKENS tokens, so that codes which it has read serve 16 products; 4 of them
// make the 16 rows of a block. A workgroup has BLOCKS blocks, and SPLITS times as many invocations: they share the groups of
// a row, or, where STAGED is defined, take TOKENS tokens each of what all of them stage. Where ROUNDS is defined, the last workgroup
// rounds the one row that there is for the next product. Includers define DOT, SUBGROUPS, STAGED, ROUNDS.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "bytes.glsl"
#include "gates.glsl"
#include "tiles.glsl"
layout(local_size_x_id = 6) in;  // 4 * BLOCKS * SPLITS
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(constant_id = 4) const bool HAS_RESIDUAL = false;
layout(constant_id = 5) const uint GATE = 0;
layout(constant_id = 7) const uint BLOCKS = 4;
layout(constant_id = 8) const uint SPLITS = 4;
layout(constant_id = 14) const uint STAGE = 1;  // chunks of 32 columns that are staged together

layout(binding = 0) readonly buffer Codes { OCTET codes[]; };
layout(binding = 1) readonly buffer Rows { uvec2 rows[]; };
layout(binding = 2) readonly buffer Sums { uint sums[]; };
layout(binding = 3) readonly buffer Weight { uvec4 weight[]; };  // of 4 rows
layout(binding = 4) readonly buffer RowSums { int row_sums[]; };
layout(binding = 5) readonly buffer Bias { float bias[]; };
layout(binding = 6) readonly buffer Residual { float residual[]; };
#ifdef ROUNDS
layout(binding = 7) coherent buffer Y { float y[]; };
#define ROUNDS_AT 8
#include "rounds.glsl"
#else
layout(binding = 7) writeonly buffer Y { float y[]; };
#define ORDER_BINDING 8
#endif
#include "experts.glsl"

#define EACH_TOKEN [[unroll]] for (uint t = 0; t < TOKENS; ++t)

ivec4 totals[TOKENS];  // of the group
ivec4 exact[TOKENS];   // of the rows
uint tokens[TOKENS];   // of the call; those behind its end repeat the last one

void end_group(uint t, ivec4 multipliers, int sum) {
  exact[t] += multipliers * (BITS == 1 ? 2 * totals[t] - sum : totals[t] - code_offset() * sum);
  totals[t] = ivec4(0);
}

ivec4 multipliers_at(uint tile, uint quad) {
  int word = int(weight[tile + kCodeWords / 4][quad]);
  return ivec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8), bitfieldExtract(word, 16, 8), word >> 24);
}

#ifdef STAGED
#include "product_staged.glsl"
#else
#include "product_split.glsl"
#endif

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

void write(uint block, uint quad, uint first_token, vec4 gates[TOKENS]) {
  uint first = push[3] + 16 * block + 4 * quad;
  EACH_TOKEN {
    uint token = output_at(first_token + t);
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

// push: columns, tokens, rows, first row of the piece, columns of y, residual: offset and stride of a token,
//   blocks to the rows of `up`, rows of the weight; from 9 on as rounds.glsl says
void main() {
  Place at = own_place();
  uint last_block = (push[2] - push[3] + 15) / 16 - 1;
  uint own = gl_WorkGroupID.x * BLOCKS + at.block, block = min(own, last_block);
  uint first_token = first_of_workgroup() + at.first_token;
  if (!choose(first_of_workgroup())) return;
  EACH_TOKEN tokens[t] = input_of(output_or_other(first_token + t, first_of_workgroup()));
  multiply(at, 0, last_block);
  vec4 gates[TOKENS];
  if (GATE != 0) {
    EACH_TOKEN {
      vec4 gate = finished(block, at.quad, t);
      gates[t] = vec4(gate_of(GATE, gate.x), gate_of(GATE, gate.y), gate_of(GATE, gate.z), gate_of(GATE, gate.w));
    }
    multiply(at, push[7], last_block);
  }
  if (at.has_sums && own == block) write(block, at.quad, first_token, gates);
#ifdef ROUNDS
  round_by_last();
#endif
}
