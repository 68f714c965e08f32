// mote.linear and mote.gated_linear over tiles with int8 activations: sums of integers are exact, and scaled in the order
// of docs/ops.md. An invocation makes 4 rows for TOKENS tokens, so that codes which it has read serve 16 products; 4 of them
// make the 16 rows of a block. A workgroup has BLOCKS blocks, and SPLITS times as many invocations: they share the groups of
// a row, or, where STAGED is defined, take TOKENS tokens each of what all of them stage. Where ROUNDS is defined, the last workgroup
// rounds the one row that there is for the next product. Includers define DOT, SUBGROUPS, STAGED, ROUNDS.
#include "products.glsl"
layout(constant_id = 8) const uint SPLITS = 4;
layout(constant_id = 14) const uint STAGE = 1;  // chunks of 32 columns that are staged together

layout(binding = 0) readonly buffer Codes { OCTET codes[]; };
layout(binding = 1) readonly buffer Rows { uvec2 rows[]; };
layout(binding = 2) readonly buffer Sums { uint sums[]; };
layout(binding = 4) readonly buffer RowSums { int row_sums[]; };

ivec4 totals[TOKENS];  // of the group
ivec4 exact[TOKENS];   // of the rows

void end_group(uint t, ivec4 multipliers, int sum) {
  exact[t] += multipliers * (BITS == 1 ? 2 * totals[t] - sum : totals[t] - code_offset() * sum);
  totals[t] = ivec4(0);
}

ivec4 multipliers_at(uint tile, uint quad) { return bytes_of(tile + kCodeWords / 4, quad); }

#ifdef STAGED
#include "product_staged.glsl"
#else
#include "product_split.glsl"
#endif

vec4 finished(uint block, uint quad, uint t) {
  uint first = first_row(block, quad);
  uvec2 of_row = rows[tokens[t]];
  uint scales = (first_block() + block) * (block_words(push[0]) / 4) + push[0] / GROUP * (kTileWords / 4) + quad;
  uint sums_at = first + (PAIRS == 0 ? 0 : 16 * expert * push[19]);
  ivec4 sums_of_codes = ivec4(row_sums[sums_at], row_sums[sums_at + 1], row_sums[sums_at + 2], row_sums[sums_at + 3]);
  precise vec4 scaled = uintBitsToFloat(weight[scales]) * vec4(exact[t] - (128 + int(of_row.y)) * sums_of_codes);
  precise vec4 value = uintBitsToFloat(of_row.x) * scaled;
  return with_bias(value, first);
}

// push: products.glsl
void main() {
  Place at = own_place();
  uint last = last_block(), own = gl_WorkGroupID.x * BLOCKS + at.block, block = min(own, last);
  uint first_token = first_of_workgroup() + at.first_token;
  if (!choose(first_of_workgroup())) return;
  EACH_TOKEN tokens[t] = input_of(output_or_other(first_token + t, first_of_workgroup()));
  multiply(at, 0, last);
  vec4 gates[TOKENS];
  if (GATE != 0) {
    find_gates(block, at.quad, gates);
    multiply(at, push[7], last);
  }
  if (at.has_sums && own == block) write(block, at.quad, first_token, gates);
#ifdef ROUNDS
  round_by_last();
#endif
}
