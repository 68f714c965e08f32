// Digits and codes of STAGE chunks of 32 columns lie in shared memory while all invocations of the workgroup read them.
#define COLUMNS 32
const uint kAllTokens = TOKENS * SPLITS, kBlockQuads = 4 * BITS;  // of a chunk
shared uvec4 staged_weight[STAGE * BLOCKS * kBlockQuads];
shared OCTET staged_codes[STAGE * kAllTokens * 4];
shared uint staged_sums[STAGE * kAllTokens];

uint own_codes = 0;  // where those of the first token begin
uvec4 weight_at(uint index) { return staged_weight[index]; }
OCTET codes_at(uint t, uint octet) { return staged_codes[own_codes + 4 * t + octet]; }
#include "product_planes.glsl"

struct Place {
  uint block, quad, split, first_token;
  bool has_sums;
};
uint first_of_workgroup() { return gl_WorkGroupID.y * kAllTokens; }

Place own_place() {
  uint lane = gl_LocalInvocationID.x, place = lane % (4 * BLOCKS), split = lane / (4 * BLOCKS);
  return Place(place / 4, place % 4, split, split * TOKENS, true);
}

// Where a chunk has the words of 4 rows: its planes lie in those of the group.
uint stored_at(uint chunk, uint index) {
  uint in_group = chunk % (GROUP / 32), at = chunk / (GROUP / 32) * (kTileWords / 4), begin = 0, plane = kPlane0;
  if (kPlane1 != 0 && index >= 4 * kPlane0) {
    begin = kPlane0;
    plane = kPlane1;
  }
  if (kPlane2 != 0 && index >= 4 * (kPlane0 + kPlane1)) {
    begin = kPlane0 + kPlane1;
    plane = kPlane2;
  }
  return at + 4 * GROUP / 32 * begin + 4 * plane * in_group + index - 4 * begin;
}

void stage(uint first_chunk, uint chunks, uint step, uint last_block) {
  uint lane = gl_LocalInvocationID.x, columns = push[0], lanes = 4 * BLOCKS * SPLITS;
  barrier();
  for (uint i = lane; i < chunks * BLOCKS * kBlockQuads; i += lanes) {
    uint chunk = first_chunk + i / (BLOCKS * kBlockQuads), in_chunk = i % (BLOCKS * kBlockQuads);
    uint block = min(gl_WorkGroupID.x * BLOCKS + in_chunk / kBlockQuads, last_block) + step;
    uint begin = (first_block() + block) * (block_words(columns) / 4);
    staged_weight[i] = weight[begin + stored_at(chunk, in_chunk % kBlockQuads)];
  }
  for (uint i = lane; i < chunks * kAllTokens; i += lanes) {
    uint chunk = first_chunk + i / kAllTokens, token = input_of(output_or_other(first_of_workgroup() + i % kAllTokens, first_of_workgroup()));
    uint at = token * (columns / 8) + 4 * chunk;
    [[unroll]] for (uint octet = 0; octet < 4; ++octet) staged_codes[4 * i + octet] = codes[at + octet];
    staged_sums[i] = sums[token * (columns / 32) + chunk];
  }
  barrier();
}

void multiply(Place own, uint step, uint last_block) {
  uint columns = push[0], all = columns / 32, block = min(gl_WorkGroupID.x * BLOCKS + own.block, last_block) + step;
  uint begin = (first_block() + block) * (block_words(columns) / 4);
  int group_sums[TOKENS];
  EACH_TOKEN {
    exact[t] = totals[t] = ivec4(0);
    group_sums[t] = 0;
  }
  for (uint first = 0; first < all; first += STAGE) {
    uint chunks = min(STAGE, all - first);
    stage(first, chunks, step, last_block);
    for (uint i = 0; i < chunks; ++i) {
      own_codes = 4 * (i * kAllTokens + own.first_token);
      add_planes((i * BLOCKS + own.block) * kBlockQuads + own.quad, 0);
      EACH_TOKEN group_sums[t] += int(staged_sums[i * kAllTokens + own.first_token + t]);
      if ((first + i + 1) % (GROUP / 32) != 0) continue;
      ivec4 multipliers = multipliers_at(begin + (first + i) / (GROUP / 32) * (kTileWords / 4), own.quad);
      EACH_TOKEN {
        end_group(t, multipliers, group_sums[t]);
        group_sums[t] = 0;
      }
    }
  }
}
