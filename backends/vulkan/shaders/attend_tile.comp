// mote.attention for a tile of tokens and one head of keys, with the heads of queries that share it, HEADS at a time: keys and values are
// read once for all of these queries, 4 of which are the components of a vector. Each query's numbers are made and added as in attend.comp,
// so that a token's result does not depend on its neighbours in a call.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint ROWS = 16;  // queries of a workgroup: 4, 8, 16 or 32

layout(binding = 8) writeonly buffer Y { float y[]; };
layout(binding = 9) writeonly buffer Lse { float lse[]; };
#define QUERIES ROWS
uint token_of_query(uint query);
#include "attention.glsl"
#include "softmax.glsl"

const uint kQuads = ROWS / 4, kTokens = ROWS / HEADS, kLanes = 64 / kQuads;

shared vec4 queries[kQuads * WIDTH];
shared vec4 scores[kQuads * 64];
shared float largest[ROWS], sums[ROWS], factors[ROWS];           // of a split
shared float all_largest[ROWS], all_sums[ROWS], others[ROWS];    // of all of them
shared uint places[ROWS], firsts[ROWS], ends[ROWS], counts[ROWS];  // of a query; counts: positions of a block

uint token_of_query(uint row) { return min(gl_WorkGroupID.y * kTokens + row / HEADS, push[1] - 1); }
bool is_query(uint row) {
  return row < kTokens * HEADS && gl_WorkGroupID.y * kTokens + row / HEADS < push[1] && is_there(row % HEADS);
}
#define QUAD(of, at) vec4(of[at], of[at + 1], of[at + 2], of[at + 3])

void begin_rows() {
  uint lane = gl_LocalInvocationID.x;
  for (uint i = lane; i < ROWS * WIDTH; i += 64) {
    uint row = i / WIDTH, k = i % WIDTH;
    queries[row / 4 * WIDTH + k][row % 4] = q[push[2] + head_of_query(row) * push[3] + token_of_query(row) * push[4] + k];
  }
  if (lane >= ROWS) return;
  places[lane] = positions[token_of_query(lane)];
  firsts[lane] = first_visible(places[lane]);
  ends[lane] = end_of(places[lane]);
  all_largest[lane] = -kInfinity;
  all_sums[lane] = 0.0;
}

// Scores of a block, of positions that are kLanes apart; behind `end` there are none.
void score(uint block, uint end, out vec4 found[kQuads]) {
  uint lane = gl_LocalInvocationID.x, own = lane / kLanes, pairs = WIDTH / 2, at[kQuads];
  [[unroll]] for (uint j = 0; j < kQuads; ++j) {
    at[j] = (min(block + lane % kLanes + j * kLanes, end) * push[0] + gl_WorkGroupID.x / kChunks) * pairs;
    found[j] = vec4(0.0);
  }
  for (uint i = 0; i < pairs; ++i) {
    vec4 even = queries[own * WIDTH + 2 * i], odd = queries[own * WIDTH + 2 * i + 1];
    [[unroll]] for (uint j = 0; j < kQuads; ++j) {
      vec2 key = unpackHalf2x16(keys[at[j] + i]);
      found[j] = fma(vec4(key.x), even, found[j]);
      found[j] = fma(vec4(key.y), odd, found[j]);
    }
  }
  [[unroll]] for (uint j = 0; j < kQuads; ++j) {
    uint place = block + lane % kLanes + j * kLanes;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      uint row = 4 * own + i;
      bool is_visible = is_seen(row, block, place, firsts[row], ends[row]);
      found[j][i] = is_visible ? score_of(found[j][i], token_of_query(row), head_of_query(row), place, places[row]) : -kInfinity;
    }
    scores[own * 64 + lane % kLanes + j * kLanes] = found[j];
  }
}

// The weights of a block from its scores, and what earlier ones of the split are scaled by.
void weigh(uint block, vec4 found[kQuads]) {
  uint lane = gl_LocalInvocationID.x, own = lane / kLanes;
  bool sees = false;
  barrier();
  if (lane < ROWS) {
    sees = reaches(block, firsts[lane], ends[lane]) && has_choice(lane);
    counts[lane] = sees ? min(64, ends[lane] + 1 - block) : 0;
    float most = largest[lane];
    for (uint i = 0; i < 64; ++i) most = max(most, scores[lane / 4 * 64 + i][lane % 4]);
    factors[lane] = !sees ? 1.0 : largest[lane] == -kInfinity ? 0.0 : exp(largest[lane] - most);
    largest[lane] = most;
  }
  barrier();
  vec4 most = QUAD(largest, 4 * own);
  [[unroll]] for (uint j = 0; j < kQuads; ++j) {
    [[unroll]] for (uint i = 0; i < 4; ++i) found[j][i] = found[j][i] == -kInfinity ? 0.0 : exp(found[j][i] - most[i]);
    scores[own * 64 + lane % kLanes + j * kLanes] = found[j];
  }
  barrier();
  if (sees) {
    precise float sum = sums[lane] * factors[lane];
    for (uint i = 0; i < 64; ++i) sum += scores[lane / 4 * 64 + i][lane % 4];
    sums[lane] = sum;
  }
}

// Pairs of outputs of 4 queries: first and second elements.
struct Outputs {
  vec4 even[ITEMS], odd[ITEMS];
};

void add_values(uint block, inout Outputs outputs) {
  uint value_pairs = VALUE_WIDTH / 2, step = push[0] * VALUE_STRIDE / 2;
  for (uint item = 0; item < ITEMS; ++item) {
    uint index = gl_LocalInvocationID.x + 64 * item, own = index / value_pairs, row = 4 * own, i = 0;
    if (index >= kQuads * value_pairs) break;
    vec4 factor = QUAD(factors, row), even = outputs.even[item] * factor, odd = outputs.odd[item] * factor;
    uvec4 count = uvec4(counts[row], counts[row + 1], counts[row + 2], counts[row + 3]);
    uint least = min(min(count.x, count.y), min(count.z, count.w)), most = max(max(count.x, count.y), max(count.z, count.w));
    uint at = block * step + gl_WorkGroupID.x / kChunks * (VALUE_STRIDE / 2) + index % value_pairs;
    for (; i < least; ++i, at += step) {
      vec2 value = unpackHalf2x16(values[at]);
      vec4 weight = scores[own * 64 + i];
      even = fma(weight, vec4(value.x), even);
      odd = fma(weight, vec4(value.y), odd);
    }
    for (; i < most; ++i, at += step) {
      vec2 value = unpackHalf2x16(values[at]);
      vec4 weight = scores[own * 64 + i];
      bvec4 has = lessThan(uvec4(i), count);
      even = mix(even, fma(weight, vec4(value.x), even), has);
      odd = mix(odd, fma(weight, vec4(value.y), odd), has);
    }
    outputs.even[item] = even;
    outputs.odd[item] = odd;
  }
}

void end_split(Outputs outputs, inout Outputs all) {
  uint lane = gl_LocalInvocationID.x;
  barrier();
  if (lane < ROWS) merge(all_largest[lane], all_sums[lane], largest[lane], sums[lane], factors[lane], others[lane]);
  barrier();
  for (uint item = 0; item < ITEMS; ++item) {
    uint row = 4 * ((lane + 64 * item) / (VALUE_WIDTH / 2));
    if (row >= ROWS) break;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      vec2 merged = merged_outputs(vec2(all.even[item][i], all.odd[item][i]), vec2(outputs.even[item][i], outputs.odd[item][i]),
                                   largest[row + i], factors[row + i], others[row + i]);
      all.even[item][i] = merged.x;
      all.odd[item][i] = merged.y;
    }
  }
}

void write(Outputs all) {
  for (uint item = 0; item < ITEMS; ++item) {
    uint index = gl_LocalInvocationID.x + 64 * item, first = 4 * (index / (VALUE_WIDTH / 2));
    if (first >= ROWS) break;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      uint row = first + i, head = head_of_query(row);
      if (!is_query(row)) continue;
      vec2 mean = finished(all_largest[row], all_sums[row], vec2(all.even[item][i], all.odd[item][i]), sink_of(token_of_query(row), head));
      uint place = token_of_query(row) * push[0] * TOGETHER + head, pair = index % (VALUE_WIDTH / 2);
      uint at = place * VALUE_WIDTH + 2 * pair;
      if (HAS_LSE && pair == 0) lse[place] = log_of_sum(all_largest[row], all_sums[row], sink_of(token_of_query(row), head));
      y[at] = mean.x;
      y[at + 1] = mean.y;
    }
  }
}

// push: attention.glsl
void main() {
  uint lane = gl_LocalInvocationID.x;
  begin_rows();
  barrier();
  uint first = firsts[0], end = ends[ROWS - 1];  // of any of the queries
  Outputs all, outputs;
  for (uint i = 0; i < ITEMS; ++i) all.even[i] = all.odd[i] = vec4(0.0);
  for (uint split = first_split(first); split <= end / 256; ++split) {
    for (uint i = 0; i < ITEMS; ++i) outputs.even[i] = outputs.odd[i] = vec4(0.0);
    barrier();
    if (lane < ROWS) {
      largest[lane] = -kInfinity;
      sums[lane] = 0.0;
    }
    for (uint block = 256 * split; block < 256 * split + 256; block += 64) {
      if (!reaches(block, first, end)) continue;
      barrier();
      find_choices(block);
      if (!anyone_has_choice()) continue;
      vec4 found[kQuads];
      score(block, end, found);
      weigh(block, found);
      add_values(block, outputs);
    }
    end_split(outputs, all);
  }
  write(all);
}
