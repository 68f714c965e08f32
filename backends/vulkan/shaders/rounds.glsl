// The last workgroup of a product, or of a chain, of one row rounds it for the next product. The includer has y, `coherent`, or ROUNDED(k), and ROUNDS_AT, where
// bindings begin; of push ENDED_AT, the number of workgroups, and QUANTIZED_AT, from where on it is as quantize.glsl says.
layout(binding = ROUNDS_AT) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = ROUNDS_AT + 1) writeonly buffer NewCodes { uint new_codes[]; };
layout(binding = ROUNDS_AT + 2) writeonly buffer NewRows { uint new_rows[]; };
layout(binding = ROUNDS_AT + 3) writeonly buffer NewSums { uint new_sums[]; };
layout(binding = ROUNDS_AT + 4) coherent buffer Turned { float turned[]; };
#define COUNTERS_AT ROUNDS_AT + 5
#include "last.glsl"

#ifndef ROUNDED
#define ROUNDED(k) y[k]
#endif
float source(uint k) { return ROUNDED(k); }
#include "quantize.glsl"

void round_by_last() {
  if (is_last_of(0, push[ENDED_AT])) quantize_row(0, 0, 1);
}
