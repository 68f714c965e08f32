// The groups of a row, shared by the invocations of SPLITS splits: split s has the groups s, s + SPLITS, ...
#define COLUMNS GROUP
shared ivec4 parts[SPLITS > 1 ? 4 * BLOCKS * SPLITS * TOKENS : 1];

uint code_begins[TOKENS];
uvec4 weight_at(uint index) { return weight[index]; }
OCTET codes_at(uint t, uint octet) { return codes[code_begins[t] + octet]; }
#include "product_planes.glsl"

struct Place {
  uint block, quad, split, first_token;
  bool has_sums;
};
uint first_of_workgroup() { return gl_WorkGroupID.y * TOKENS; }

#ifdef SUBGROUPS
// Whether lanes of subgroups can be counted through, which the size that a driver names does not promise.
bool are_full() { return gl_NumSubgroups * gl_SubgroupSize == 4 * BLOCKS * SPLITS; }

Place own_place() {
  uint lane = are_full() ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationID.x;
  uint split = lane / 4 % SPLITS;
  return Place(lane / (4 * SPLITS), lane % 4, split, 0, split == 0);
}
#else
Place own_place() {
  uint lane = gl_LocalInvocationID.x, place = SPLITS == 1 ? lane : lane % (4 * BLOCKS);
  uint split = SPLITS == 1 ? 0 : lane / (4 * BLOCKS);
  return Place(place / 4, place % 4, split, 0, split == 0);
}
#endif

// The sums of all splits, which the first of them gets.
void join(Place own) {
  if (SPLITS == 1) return;
  uint joined = 1;  // neighbouring splits whose sums each of them has
#ifdef SUBGROUPS
  if (are_full()) {
    for (; joined < SPLITS && 4 * joined < gl_SubgroupSize; joined *= 2) {
      EACH_TOKEN exact[t] += subgroupShuffleXor(exact[t], 4 * joined);
    }
  }
  if (joined == SPLITS) return;
#endif
  uint place = 4 * own.block + own.quad;
  barrier();
  EACH_TOKEN parts[(own.split * TOKENS + t) * 4 * BLOCKS + place] = exact[t];
  barrier();
  if (own.split != 0) return;
  for (uint other = joined; other < SPLITS; other += joined) {
    EACH_TOKEN exact[t] += parts[(other * TOKENS + t) * 4 * BLOCKS + place];
  }
}

// step: blocks to the rows that are multiplied
void multiply(Place own, uint step, uint last_block) {
  uint columns = push[0], block = min(gl_WorkGroupID.x * BLOCKS + own.block, last_block) + step;
  uint begin = (first_block() + block) * (block_words(columns) / 4);
  EACH_TOKEN {
    code_begins[t] = tokens[t] * (columns / 8);
    exact[t] = totals[t] = ivec4(0);
  }
  for (uint group = own.split; group < columns / GROUP; group += SPLITS) {
    uint tile = begin + group * (kTileWords / 4);
    add_planes(tile + own.quad, group * (GROUP / 8));
    ivec4 multipliers = multipliers_at(tile, own.quad);
    EACH_TOKEN {
      int sum = 0;
      [[unroll]] for (uint i = 0; i < GROUP / 32; ++i) {
        sum += int(sums[tokens[t] * (columns / 32) + group * (GROUP / 32) + i]);
      }
      end_group(t, multipliers, sum);
    }
  }
  join(own);
}
