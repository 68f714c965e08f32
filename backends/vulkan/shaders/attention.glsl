// What attend.comp and attend_tile.comp share: which positions a query sees, and what a score is. Includers have QUERIES, of a workgroup.
// push: heads of keys, tokens, q: offset, stride of a head, of a token; window, scale, softcap; splits; first positions that are seen in
//   spite of the window; stride of a token's sinks; distances of biases; of choices: groups of heads, positions
layout(constant_id = 0) const uint HEADS = 1;     // of queries, that a workgroup takes
layout(constant_id = 7) const uint TOGETHER = 1;  // of queries, that share a head of keys
layout(constant_id = 1) const uint WIDTH = 64;    // of a key
layout(constant_id = 2) const uint VALUE_WIDTH = 64;
layout(constant_id = 12) const uint VALUE_STRIDE = 64;  // from a value to the next: of a key where values are parts of keys
layout(constant_id = 4) const bool HAS_SINKS = false;
layout(constant_id = 5) const bool HAS_SLOPES = false;
layout(constant_id = 8) const bool IS_BIDIRECTIONAL = false;  // whether positions behind a token are seen that the call fills
layout(constant_id = 9) const bool IS_CHUNKED = false;        // whether windows begin at multiples of their length
layout(constant_id = 10) const bool HAS_BIASES = false;
layout(constant_id = 11) const bool HAS_CHOSEN = false;
layout(constant_id = 13) const uint STRIDE = 1;  // of positions the last one of each so many is seen
layout(constant_id = 14) const bool HAS_LSE = false;
layout(constant_id = 6) const uint ITEMS = 1;  // pairs of outputs of an invocation, rounded up

layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Keys { uint keys[]; };
layout(binding = 2) readonly buffer Values { uint values[]; };
layout(binding = 3) readonly buffer Positions { uint positions[]; };
layout(binding = 4) readonly buffer Sinks { float sinks[]; };
layout(binding = 5) readonly buffer Slopes { float slopes[]; };
layout(binding = 6) readonly buffer Biases { float biases[]; };  // [tokens, heads, distances]
layout(binding = 7) readonly buffer Chosen { int chosen[]; };    // [tokens, groups, positions], ascending; negative: none

#include "gates.glsl"

const uint kChunks = (TOGETHER + HEADS - 1) / HEADS;

// Of the workgroup's heads those that there are; the last one stands for the others.
bool is_there(uint h) { return gl_WorkGroupID.x % kChunks * HEADS + h < TOGETHER; }
uint head_of(uint h) {
  return gl_WorkGroupID.x / kChunks * TOGETHER + min(gl_WorkGroupID.x % kChunks * HEADS + h, TOGETHER - 1);
}
uint head_of_query(uint query) { return head_of(query % HEADS); }

uint first_visible(uint position) {
  if (IS_CHUNKED) return position / push[5] * push[5];
  return push[5] == 0 || position < push[5] ? 0 : position + 1 - push[5];
}
uint end_of(uint position) {
  if (!IS_BIDIRECTIONAL) return position;
  uint last = positions[push[1] - 1];
  return push[5] == 0 ? last : min(last, position + push[5] - 1);
}
uint first_split(uint first) { return push[9] != 0 ? 0 : first / 256; }
// Whether a block of 64 has something between the first position that is seen and the end.
bool reaches(uint block, uint first, uint end) { return block <= end && (block + 63 >= first || block < push[9]); }

shared uint choices[HAS_CHOSEN ? 4 * QUERIES : 1];  // of a block: 16 positions each, a bit for those that the query chose

// Those from `place` on of a row that ascends.
uint choice_at(uint row, uint place) {
  uint at = 0, end = push[13], found = 0;
  while (at < end) {
    uint middle = (at + end) / 2;
    if (chosen[row + middle] < int(place)) {
      at = middle + 1;
    } else {
      end = middle;
    }
  }
  for (; at < push[13] && chosen[row + at] < int(place + 16); ++at) found |= 1u << ((uint(chosen[row + at]) - place) & 15);
  return found;
}

// For all invocations together; the includer says of which token and head a query is.
void find_choices(uint block) {
  if (!HAS_CHOSEN) return;
  for (uint i = gl_LocalInvocationID.x; i < 4 * QUERIES; i += 64) {
    uint group = head_of_query(i / 4) * push[12] / (push[0] * TOGETHER);
    choices[i] = choice_at((token_of_query(i / 4) * push[12] + group) * push[13], block + 16 * (i % 4));
  }
  barrier();
}
bool has_choice(uint query) {
  if (!HAS_CHOSEN) return true;
  return (choices[4 * query] | choices[4 * query + 1] | choices[4 * query + 2] | choices[4 * query + 3]) != 0;
}
bool anyone_has_choice() {
  bool has = !HAS_CHOSEN;
  for (uint query = 0; query < QUERIES; ++query) has = has || has_choice(query);
  return has;
}
bool is_seen(uint query, uint block, uint place, uint first, uint end) {
  uint bit = place - block;
  if (STRIDE > 1 && (place + 1) % STRIDE != 0) return false;
  if (HAS_CHOSEN && (choices[4 * query + bit / 16] >> (bit % 16) & 1) == 0) return false;
  return place <= end && (place >= first || place < push[9]);
}

float score_of(float product, uint token, uint head, uint place, uint position) {
  precise float score = product * float_at(6);
  if (float_at(7) != 0.0) score = float_at(7) * tanh_of(score / float_at(7));
  if (HAS_BIASES && place <= position && position - place < push[11]) {
    score = score + biases[(token * push[0] * TOGETHER + head) * push[11] + position - place];
  }
  if (HAS_SLOPES) score = score + slopes[head] * (float(place) - float(position));
  return score;
}
float sink_of(uint token, uint head) { return HAS_SINKS ? sinks[token * push[10] + head] : -kInfinity; }
