// mote.linear and mote.gated_linear with float activations: tiles, or dense rows in float32, float16 or bfloat16 (BITS 0).
// A workgroup makes one row for TOKENS tokens; its invocations share the columns. Where ROUNDS is defined, the last workgroup rounds
// all that they made, a row of one token, for the next product; where CHAIN is defined, it does the steps of a chain behind that.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "gates.glsl"
#include "tiles.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(constant_id = 4) const bool HAS_RESIDUAL = false;
layout(constant_id = 5) const uint GATE = 0;
layout(constant_id = 6) const uint DENSE = 0;  // 0: tiles, 1: float32, 2: float16, 3: bfloat16

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weight { uint weight[]; };
layout(binding = 2) readonly buffer Bias { float bias[]; };
layout(binding = 3) readonly buffer Residual { float residual[]; };
#ifdef CHAIN
#define COUNTERS_AT 4
#include "last.glsl"
#define CHAIN_AT 5
#include "chain_memories.glsl"
#define SET_Y(index, value) set_memory(0, index, floatBitsToUint(value))
#elif defined(ROUNDS)
layout(binding = 4) coherent buffer Y { float y[]; };
#define ROUNDS_AT 5
#define ENDED_AT 12
#define QUANTIZED_AT 24
#include "rounds.glsl"
#else
layout(binding = 4) writeonly buffer Y { float y[]; };
#define ORDER_BINDING 5
#endif
#ifndef SET_Y
#define SET_Y(index, value) y[index] = value
#endif

shared float sums_of_lanes[64 * TOKENS];

#include "elements.glsl"
#include "experts.glsl"

// push: columns, tokens, rows, first row of the piece, columns of y, residual: offset and stride of a token,
//   rows to those of `up`, x: rows of the inner dimension, offset, outer stride, inner stride; as rounds.glsl says; of a chain: workgroups,
//   the first step, how many there are
uint input_begin(uint token) { return push[9] + token / push[8] * push[10] + token % push[8] * push[11]; }

void multiply(uint row, uint first_token) {
  uint lane = gl_LocalInvocationID.x, first_row = first_block() * (DENSE == 0 ? 16 : 1);
  float sums[TOKENS];
  uint tokens[TOKENS];
  [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
    sums[t] = 0.0;
    tokens[t] = input_of(output_or_other(first_token + t, first_token));
  }
  for (uint k = lane; k < push[0]; k += 64) {
    float w = element(first_row + row, k);
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[t] = fma(w, x[input_begin(tokens[t]) + k], sums[t]);
  }
  [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums_of_lanes[t * 64 + lane] = sums[t];
  barrier();
  for (uint half_lanes = 32; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) {
      [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums_of_lanes[t * 64 + lane] += sums_of_lanes[t * 64 + lane + half_lanes];
    }
    barrier();
  }
}

void make() {
  uint row = gl_WorkGroupID.x, first_token = gl_WorkGroupID.y * TOKENS, t = gl_LocalInvocationID.x;
  if (!choose(first_token)) return;
  multiply(row, first_token);
  uint token = t < TOKENS ? output_at(first_token + t) : push[1], index = push[3] + row;
  float gate = 1.0;
  if (GATE != 0) {
    if (t < TOKENS) gate = gate_of(GATE, sums_of_lanes[t * 64] + (HAS_BIAS ? bias[first_bias() + index] : 0.0));
    barrier();
    multiply(row + push[7], first_token);
  }
  if (t < TOKENS && token < push[1]) {
    float value = sums_of_lanes[t * 64];
    if (HAS_BIAS) value += bias[first_bias() + index + (GATE != 0 ? push[7] : 0)];
    if (GATE != 0) value *= gate;
    if (HAS_RESIDUAL) value += residual[push[5] + token * push[6] + index];
    SET_Y(token * push[4] + index, value);
  }
}

#ifdef CHAIN
#include "chain_steps.glsl"
#endif

void main() {
#ifdef CHAIN
  take_pushed();
  make();
  if (is_last_of(0, pushed[12])) go_through(pushed[13], pushed[14], 0, true);
#else
  make();
#endif
#ifdef ROUNDS
  round_by_last();
#endif
}
