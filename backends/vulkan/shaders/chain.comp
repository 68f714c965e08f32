// Steps that are dispatches elsewhere, one after the other by one workgroup; each does what its own shader does, to the bit.
#version 450
#extension GL_GOOGLE_include_directive : require
#define CHAIN
#include "common.glsl"
#include "gates.glsl"
layout(local_size_x = 64) in;
layout(push_constant) uniform Chain { uint first_step, num_steps; };
layout(binding = 0) readonly buffer Steps { uint steps[]; };
layout(binding = 1) coherent buffer Memory0 { uint memory0[]; };
layout(binding = 2) coherent buffer Memory1 { uint memory1[]; };
layout(binding = 3) coherent buffer Memory2 { uint memory2[]; };
layout(binding = 4) coherent buffer Memory3 { uint memory3[]; };
layout(binding = 5) coherent buffer Memory4 { uint memory4[]; };
layout(binding = 6) coherent buffer Memory5 { uint memory5[]; };
layout(binding = 7) coherent buffer Memory6 { uint memory6[]; };
layout(binding = 8) coherent buffer Memory7 { uint memory7[]; };
layout(binding = 9) coherent buffer Memory8 { uint memory8[]; };
layout(binding = 10) coherent buffer Memory9 { uint memory9[]; };
layout(binding = 11) coherent buffer Memory10 { uint memory10[]; };
layout(binding = 12) coherent buffer Memory11 { uint memory11[]; };

// plan_chains.cpp: shader, its workgroups, 3 constants, memory of 4 bindings, the first workgroup that does the step, how many do;
// from kFirstPushed on what is pushed.
const uint kStepWords = 48, kFirstPushed = 16;
const uint kMap = 0, kReduce = 1, kSoftmax = 2, kTop = 3, kPick = 4, kScatter = 5, kMatmul = 6, kNorm = 7;
shared uint own_step[kFirstPushed];

// What no step of a chain needs is left out of its pipeline: a driver takes long to compile all of this at once.
layout(constant_id = 0) const uint KINDS = 0xff;  // of steps, a bit each
layout(constant_id = 1) const uint MEMORIES = 12;

uint read(uint binding, uint at) {
  uint own = own_step[5 + binding];
  if (MEMORIES > 11 && own == 11) return memory11[at];
  if (MEMORIES > 10 && own == 10) return memory10[at];
  if (MEMORIES > 9 && own == 9) return memory9[at];
  if (MEMORIES > 8 && own == 8) return memory8[at];
  if (MEMORIES > 7 && own == 7) return memory7[at];
  if (MEMORIES > 6 && own == 6) return memory6[at];
  if (MEMORIES > 5 && own == 5) return memory5[at];
  if (MEMORIES > 4 && own == 4) return memory4[at];
  if (MEMORIES > 3 && own == 3) return memory3[at];
  if (MEMORIES > 2 && own == 2) return memory2[at];
  if (MEMORIES > 1 && own == 1) return memory1[at];
  return memory0[at];
}

void write(uint binding, uint at, uint value) {
  uint own = own_step[5 + binding];
  if (MEMORIES > 0 && own == 0) memory0[at] = value;
  if (MEMORIES > 1 && own == 1) memory1[at] = value;
  if (MEMORIES > 2 && own == 2) memory2[at] = value;
  if (MEMORIES > 3 && own == 3) memory3[at] = value;
  if (MEMORIES > 4 && own == 4) memory4[at] = value;
  if (MEMORIES > 5 && own == 5) memory5[at] = value;
  if (MEMORIES > 6 && own == 6) memory6[at] = value;
  if (MEMORIES > 7 && own == 7) memory7[at] = value;
  if (MEMORIES > 8 && own == 8) memory8[at] = value;
  if (MEMORIES > 9 && own == 9) memory9[at] = value;
  if (MEMORIES > 10 && own == 10) memory10[at] = value;
  if (MEMORIES > 11 && own == 11) memory11[at] = value;
}

#define IN_0(index) read(0, index)
#define IN_1(index) read(1, index)
#define IN_2(index) read(2, index)
#define OUT_1(index, value) write(1, index, value)
#define OUT_2(index, value) write(2, index, value)
#define OUT_3(index, value) write(3, index, value)
// Constants of the steps' own pipelines.
#define LANES own_step[2]
#define ORDER own_step[3]
#define IS_LOG (own_step[3] != 0)
#define AXIS own_step[2]
#define KIND own_step[2]
#define HAS_WEIGHT (own_step[3] != 0)
#define HAS_BIAS (own_step[4] != 0)
#include "rows.glsl"
#define FUNCTION own_step[2]
#include "map.glsl"
#undef FUNCTION
#define FUNCTION own_step[3]
#include "reduce.glsl"
#include "softmax_rows.glsl"
#include "top.glsl"
#include "pick.glsl"
#include "scatter.glsl"
#include "matmul.glsl"
#include "norm.glsl"

#define STEP(shader, function) if ((KINDS >> shader & 1) != 0 && own_step[0] == shader) function(group);

void main() {
  uint lane = gl_LocalInvocationID.x;
  for (uint i = 0; i < num_steps; ++i) {
    uint begin = (first_step + i) * kStepWords;
    if (lane < kFirstPushed) own_step[lane] = steps[begin + lane];
    if (lane < kStepWords - kFirstPushed) push[lane] = steps[begin + kFirstPushed + lane];
    barrier();
    // Wraps round, and is then beyond all, for a workgroup before the first.
    uint end = own_step[1], own = group_index() - own_step[9];
    if (own >= own_step[10]) own = end;
    // Every lane of the workgroup goes through the same loop, and waits for the others before shared memory is written anew.
    for (uint group = own; group < end; group += own_step[10]) {
      STEP(kMap, map_elements)
      STEP(kReduce, reduce_rows)
      STEP(kSoftmax, softmax_rows)
      STEP(kTop, top_rows)
      STEP(kPick, pick_elements)
      STEP(kScatter, scatter_elements)
      STEP(kMatmul, matmul_elements)
      STEP(kNorm, norm_rows)
      barrier();
    }
    memoryBarrierBuffer();
    barrier();
  }
}
