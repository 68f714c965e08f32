// mote.indexer: the positions of the blocks with the highest scores, of equal ones the first, and those behind the last complete block;
// ascending, -1 before them. The least score that is chosen is found digit by digit.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint BLOCK = 1;
layout(constant_id = 1) const bool ONLY_LAST = false;  // whether the last position of a block stands for it, and there is no tail
const uint kEach = ONLY_LAST ? 1 : BLOCK, kFirst = BLOCK - kEach;  // positions of a block, and where they begin
layout(binding = 0) readonly buffer Scores { float scores[]; };  // [tokens of the dispatch, heads of keys, blocks]
layout(binding = 1) readonly buffer Positions { uint positions[]; };
layout(binding = 2) writeonly buffer Y { uint y[]; };  // [tokens, heads of keys, chosen positions]

shared uint counts[256];
shared uint above[64], equal[64];  // of the blocks of an invocation

uint first_score;

// Larger for larger scores; no number is above all.
uint rank_of(uint block) {
  float score = scores[first_score + block];
  if (isnan(score)) score = kInfinity;
  uint bits = score == 0.0 ? 0 : floatBitsToUint(score);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

// push: heads of keys, blocks that there is room for, that are chosen, first token
void main() {
  uint lane = gl_LocalInvocationID.x, token = push[3] + gl_WorkGroupID.x, kv_head = gl_WorkGroupID.y;
  uint end = positions[token] + 1, complete = end / BLOCK, count = min(complete, push[2]), tail = ONLY_LAST ? 0 : end - complete * BLOCK;
  uint width = push[2] * kEach + kEach - 1, first = (token * push[0] + kv_head) * width;
  uint absent = width - count * kEach - tail;
  first_score = (gl_WorkGroupID.x * push[0] + kv_head) * push[1];
  for (uint i = lane; i < absent; i += 64) y[first + i] = 0xffffffffu;
  for (uint i = lane; i < tail; i += 64) y[first + width - tail + i] = complete * BLOCK + i;
  first += absent;
  if (complete <= push[2]) {
    for (uint i = lane; i < complete * kEach; i += 64) y[first + i] = i / kEach * BLOCK + kFirst + i % kEach;
    return;
  }
  uint least = 0, mask = 0, left = push[2];
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (uint i = lane; i < 256; i += 64) counts[i] = 0;
    barrier();
    for (uint block = lane; block < complete; block += 64) {
      uint rank = rank_of(block);
      if ((rank & mask) == least) atomicAdd(counts[(rank >> shift) & 255], 1);
    }
    barrier();
    uint digit = 255;
    while (digit > 0 && counts[digit] < left) left -= counts[digit--];
    least |= digit << shift;
    mask |= 255u << shift;
    barrier();
  }
  // Of those that equal the least, `left` are chosen.
  uint each = (complete + 63) / 64, begin = min(lane * each, complete), stop = min(begin + each, complete);
  above[lane] = 0;
  equal[lane] = 0;
  for (uint block = begin; block < stop; ++block) {
    uint rank = rank_of(block);
    if (rank > least) ++above[lane];
    if (rank == least) ++equal[lane];
  }
  barrier();
  uint num_above = 0, num_equal = 0;
  for (uint i = 0; i < lane; ++i) {
    num_above += above[i];
    num_equal += equal[i];
  }
  for (uint block = begin; block < stop; ++block) {
    uint rank = rank_of(block);
    bool is_equal = rank == least && num_equal < left;
    if (rank > least || is_equal) {
      uint place = first + (num_above + min(num_equal, left)) * kEach;
      for (uint i = 0; i < kEach; ++i) y[place + i] = block * BLOCK + kFirst + i;
    }
    if (rank > least) ++num_above;
    if (rank == least) ++num_equal;
  }
}
