// What attend.comp and attend_tile.comp share.
// push: heads of keys, tokens, q: offset, stride of a head, of a token; window, scale, softcap; splits; first positions that are seen in
//   spite of the window
layout(constant_id = 0) const uint HEADS = 1;     // of queries, that a workgroup takes
layout(constant_id = 7) const uint TOGETHER = 1;  // of queries, that share a head of keys
layout(constant_id = 1) const uint WIDTH = 64;    // of a key
layout(constant_id = 2) const uint VALUE_WIDTH = 64;
layout(constant_id = 4) const bool HAS_SINKS = false;
layout(constant_id = 5) const bool HAS_SLOPES = false;
layout(constant_id = 8) const bool IS_BIDIRECTIONAL = false;  // whether positions behind a token are seen that the call fills
layout(constant_id = 6) const uint ITEMS = 1;                 // pairs of outputs of an invocation, rounded up

layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Keys { uint keys[]; };
layout(binding = 2) readonly buffer Values { uint values[]; };
layout(binding = 3) readonly buffer Positions { uint positions[]; };
layout(binding = 4) readonly buffer Sinks { float sinks[]; };
layout(binding = 5) readonly buffer Slopes { float slopes[]; };

#include "gates.glsl"

const uint kChunks = (TOGETHER + HEADS - 1) / HEADS;

// Of the workgroup's heads those that there are; the last one stands for the others.
bool is_there(uint h) { return gl_WorkGroupID.x % kChunks * HEADS + h < TOGETHER; }
uint head_of(uint h) {
  return gl_WorkGroupID.x / kChunks * TOGETHER + min(gl_WorkGroupID.x % kChunks * HEADS + h, TOGETHER - 1);
}

uint first_visible(uint position) { return push[5] == 0 || position < push[5] ? 0 : position + 1 - push[5]; }
uint end_of(uint position) {
  if (!IS_BIDIRECTIONAL) return position;
  uint last = positions[push[1] - 1];
  return push[5] == 0 ? last : min(last, position + push[5] - 1);
}
uint first_split(uint first) { return push[9] != 0 ? 0 : first / 256; }
// Whether a block of 64 has something between the first position that is seen and the end.
bool sees_block(uint block, uint first, uint end) { return block <= end && (block + 63 >= first || block < push[9]); }

float score_of(float product, uint head, uint place, uint position) {
  precise float score = product * float_at(6);
  if (float_at(7) != 0.0) score = float_at(7) * tanh_of(score / float_at(7));
  if (HAS_SLOPES) score = score + slopes[head] * (float(place) - float(position));
  return score;
}
