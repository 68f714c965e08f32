// The last workgroup of a product of one row rounds it for the next product. The includer has y, `coherent`.
layout(binding = 8) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = 9) writeonly buffer NewCodes { uint new_codes[]; };
layout(binding = 10) writeonly buffer NewRows { uvec2 new_rows[]; };
layout(binding = 11) writeonly buffer NewSums { uint new_sums[]; };
layout(binding = 12) coherent buffer Turned { float turned[]; };
#define COUNTERS_AT 13
#include "last.glsl"

float source(uint k) { return y[k]; }
#define QUANTIZED_AT 10
#include "quantize.glsl"

// push[9]: workgroups; from 10 on as quantize.glsl says
void round_by_last() {
  if (is_last_of(0, push[9])) quantize_row(0);
}
