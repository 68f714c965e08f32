// Outputs by their experts, so that a product reads what it multiplies them with once for TOGETHER of them: each expert's in order, from a multiple of
// TOGETHER on; behind them places without one. A workgroup for each expert.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint EXPERTS = 8;
layout(constant_id = 1) const uint TOGETHER = 8;
layout(binding = 0) readonly buffer Chosen { uint chosen[]; };
layout(binding = 1) writeonly buffer Order { uint order[]; };

shared uint counts[EXPERTS];
shared uint owned[64];  // outputs of the expert among those of an invocation

uint expert_of(uint row) { return min(chosen[row], EXPERTS - 1); }
uint places_of(uint expert) { return (counts[expert] + TOGETHER - 1) / TOGETHER * TOGETHER; }

// push: outputs, places
void main() {
  uint lane = gl_LocalInvocationID.x, expert = gl_WorkGroupID.x, each = (push[0] + 63) / 64;
  uint begin = min(lane * each, push[0]), end = min(begin + each, push[0]);
  for (uint i = lane; i < EXPERTS; i += 64) counts[i] = 0;
  owned[lane] = 0;
  barrier();
  for (uint row = begin; row < end; ++row) {
    uint of_row = expert_of(row);
    atomicAdd(counts[of_row], 1);
    if (of_row == expert) ++owned[lane];
  }
  barrier();
  uint first = 0;
  for (uint i = 0; i < expert; ++i) first += places_of(i);
  uint place = first;
  for (uint i = 0; i < lane; ++i) place += owned[i];
  for (uint row = begin; row < end; ++row) {
    if (expert_of(row) == expert) order[place++] = row;
  }
  uint last = expert + 1 == EXPERTS ? push[1] : first + places_of(expert);
  for (uint i = first + counts[expert] + lane; i < last; i += 64) order[i] = 0xffffffffu;
}
