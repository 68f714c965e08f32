// A dispatch of steps. Where ROUNDS is defined, the last workgroup rounds a row that they made for the next product.
// push: the first step, how many there are; with ROUNDS: workgroups, the memory that has the row, where it begins, then as quantize.glsl says
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define CHAIN
#include "common.glsl"
#include "gates.glsl"
layout(local_size_x = 64) in;
#define CHAIN_AT 0
#include "chain_memories.glsl"
#ifdef ROUNDS
#define ROUNDS_AT 13
#define ENDED_AT 2
#define QUANTIZED_AT 5
#define ROUNDED(k) uintBitsToFloat(memory_at(push[3], push[4] + k))
#include "rounds.glsl"
#endif
#include "chain_steps.glsl"

void main() {
  go_through(pushed[0], pushed[1], group_index(), false);
#ifdef ROUNDS
  take_pushed();
  round_by_last();
#endif
}
