// What product.glsl and group_product.glsl share: what an invocation is told and where it reads weights and writes rows. The includer has
// bindings 0 to 2, codes and what goes with them, and 4 for itself, and `finished`.
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

layout(binding = 3) readonly buffer Weight { uvec4 weight[]; };  // of 4 rows
layout(binding = 5) readonly buffer Bias { float bias[]; };
layout(binding = 6) readonly buffer Residual { float residual[]; };
#ifdef ROUNDS
layout(binding = 7) coherent buffer Y { float y[]; };
#define ROUNDS_AT 8
#define ENDED_AT 9
#define QUANTIZED_AT 10
#include "rounds.glsl"
#else
layout(binding = 7) writeonly buffer Y { float y[]; };
#define ORDER_BINDING 8
#endif
#include "experts.glsl"

#define EACH_TOKEN [[unroll]] for (uint t = 0; t < TOKENS; ++t)

uint tokens[TOKENS];  // of the call; those behind its end repeat the last one

// push: columns, tokens, rows, first row of the piece, columns of y, residual: offset and stride of a token,
//   blocks to the rows of `up`, rows of the weight; from 9 on as rounds.glsl says; the codebook in push[24] .. push[27]

uint last_block() { return (push[2] - push[3] + 15) / 16 - 1; }
uint first_row(uint block, uint quad) { return push[3] + 16 * block + 4 * quad; }

// Signed bytes of 4 rows. at: in quads of words
ivec4 bytes_of(uint at, uint quad) {
  int word = int(weight[at][quad]);
  return ivec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8), bitfieldExtract(word, 16, 8), word >> 24);
}

vec4 with_bias(vec4 product, uint first) {
  precise vec4 value = product;
  if (HAS_BIAS) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      if (first + i < push[8]) value[i] = value[i] + bias[first_bias() + first + i];
    }
  }
  return value;
}

// Products of 4 rows with a token of the invocation's, before gates and residuals.
vec4 finished(uint block, uint quad, uint t);

void find_gates(uint block, uint quad, out vec4 gates[TOKENS]) {
  EACH_TOKEN {
    vec4 gate = finished(block, quad, t);
    gates[t] = vec4(gate_of(GATE, gate.x), gate_of(GATE, gate.y), gate_of(GATE, gate.z), gate_of(GATE, gate.w));
  }
}

void write(uint block, uint quad, uint first_token, vec4 gates[TOKENS]) {
  uint first = first_row(block, quad);
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
