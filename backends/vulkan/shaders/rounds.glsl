// The last workgroup of a product, or of a chain, of one row rounds it for the next product. The includer has y, `coherent`, or ROUNDED(k), and ROUNDS_AT, where
// bindings begin; of push ENDED_AT, the number of workgroups, and QUANTIZED_AT, from where on it is as quantize.glsl says.
layout(binding = ROUNDS_AT) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = ROUNDS_AT + 1) writeonly buffer NewCodes { uint new_codes[]; };
layout(binding = ROUNDS_AT + 2) writeonly buffer NewRows { uint new_rows[]; };
layout(binding = ROUNDS_AT + 3) writeonly buffer NewSums { uint new_sums[]; };
layout(binding = ROUNDS_AT + 4) coherent buffer Turned { float turned[]; };
#define COUNTERS_AT ROUNDS_AT + 5
#include "last.glsl"

layout(constant_id = 29) const uint GATED = 0;  // experts' gates let through what is rounded: 1 more than gates.glsl says; 0: it is y
layout(constant_id = 30) const uint GATE_STRIDE = 1;
#ifndef ROUNDED
#define ROUNDED(k) y[k]
#endif
uint rounded_row = 0;  // with gates, each row is of an expert, and rounded by the last workgroup of it

// push[28] ..: where gates begin in a row, and what they let through; alpha, limit
float source(uint k) {
  if (GATED == 0) return ROUNDED(k);
  uint at = rounded_row * push[4] + k * GATE_STRIDE;
  return gated(GATED - 1, ROUNDED(at + push[28]), ROUNDED(at + push[29]), float_at(30), float_at(31));
}
#include "quantize.glsl"

void round_by_last() {
  if (GATED != 0) rounded_row = gl_WorkGroupID.y;
  if (is_last_of(rounded_row, push[ENDED_AT])) quantize_row(rounded_row, 0, 1);
}
