// How the steps of chain_memories.glsl are done. What else an includer needs comes before: here names of its constants are others'.
#define IN_0(index) memory_at(own_step[5 + 0], index)
#define IN_1(index) memory_at(own_step[5 + 1], index)
#define IN_2(index) memory_at(own_step[5 + 2], index)
#define OUT_1(index, value) set_memory(own_step[5 + 1], index, value)
#define OUT_2(index, value) set_memory(own_step[5 + 2], index, value)
#define OUT_3(index, value) set_memory(own_step[5 + 3], index, value)
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

// workgroup: the own one   is_alone: does all of each step
void go_through(uint first_step, uint num_steps, uint workgroup, bool is_alone) {
  uint lane = gl_LocalInvocationID.x;
  for (uint i = 0; i < num_steps; ++i) {
    uint begin = (first_step + i) * kStepWords;
    if (lane < kFirstPushed) own_step[lane] = steps[begin + lane];
    if (lane < kStepWords - kFirstPushed) push[lane] = steps[begin + kFirstPushed + lane];
    barrier();
    // Wraps round, and is then beyond all, for a workgroup before the first.
    uint end = own_step[1], own = is_alone ? 0 : workgroup - own_step[9], all = is_alone ? 1 : own_step[10];
    if (own >= all) own = end;
    // Every lane of the workgroup goes through the same loop, and waits for the others before shared memory is written anew.
    for (uint group = own; group < end; group += all) {
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
