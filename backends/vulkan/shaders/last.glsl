// The workgroup of a dispatch that ends last does what needs the work of all of them; none waits for another. The includer has
// COUNTERS_AT, a binding. What others have written is read from buffers that are `coherent`.
layout(binding = COUNTERS_AT) coherent buffer Counters { uint counters[]; };  // 0 between dispatches
shared uint num_ended;

// Of `all` workgroups that count with a counter. For all invocations of a workgroup together.
bool is_last_of(uint counter, uint all) {
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationID.x == 0) {
    memoryBarrierBuffer();
    num_ended = atomicAdd(counters[counter], 1) + 1;
    if (num_ended == all) atomicExchange(counters[counter], 0);
    memoryBarrierBuffer();
  }
  barrier();
  memoryBarrierBuffer();
  return num_ended == all;
}
