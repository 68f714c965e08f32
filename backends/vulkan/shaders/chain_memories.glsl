// Steps that are dispatches elsewhere, one after the other; each does what its own shader does, to the bit. The includer, where CHAIN is
// defined, has CHAIN_AT, where its bindings begin.
layout(binding = CHAIN_AT) readonly buffer Steps { uint steps[]; };
layout(binding = CHAIN_AT + 1) coherent buffer Memory0 { uint memory0[]; };
layout(binding = CHAIN_AT + 2) coherent buffer Memory1 { uint memory1[]; };
layout(binding = CHAIN_AT + 3) coherent buffer Memory2 { uint memory2[]; };
layout(binding = CHAIN_AT + 4) coherent buffer Memory3 { uint memory3[]; };
layout(binding = CHAIN_AT + 5) coherent buffer Memory4 { uint memory4[]; };
layout(binding = CHAIN_AT + 6) coherent buffer Memory5 { uint memory5[]; };
layout(binding = CHAIN_AT + 7) coherent buffer Memory6 { uint memory6[]; };
layout(binding = CHAIN_AT + 8) coherent buffer Memory7 { uint memory7[]; };
layout(binding = CHAIN_AT + 9) coherent buffer Memory8 { uint memory8[]; };
layout(binding = CHAIN_AT + 10) coherent buffer Memory9 { uint memory9[]; };
layout(binding = CHAIN_AT + 11) coherent buffer Memory10 { uint memory10[]; };
layout(binding = CHAIN_AT + 12) coherent buffer Memory11 { uint memory11[]; };

// plan_chains.cpp: shader, its workgroups, 3 constants, memory of 4 bindings, the first workgroup that does the step, how many do;
// from kFirstPushed on what is pushed.
const uint kStepWords = 48, kFirstPushed = 16;
const uint kMap = 0, kReduce = 1, kSoftmax = 2, kTop = 3, kPick = 4, kScatter = 5, kMatmul = 6, kNorm = 7;
shared uint own_step[kFirstPushed];

// What no step of a chain needs is left out of its pipeline: a driver takes long to compile all of this at once.
layout(constant_id = 18) const uint KINDS = 0xff;  // of steps, a bit each
layout(constant_id = 19) const uint MEMORIES = 12;

uint memory_at(uint own, uint at) {
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

void set_memory(uint own, uint at, uint value) {
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

// What the host pushed, where a step's words were.
void take_pushed() {
  if (gl_LocalInvocationID.x < 32) push[gl_LocalInvocationID.x] = pushed[gl_LocalInvocationID.x];
  barrier();
}
