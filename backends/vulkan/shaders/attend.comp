// mote.attention for a single token, a split of 256 positions and one head of keys, with the heads of queries that share it, HEADS at a
// time. Positions are taken 64 at a time. The workgroup of a head that ends last draws its splits together, and the last one of all rounds
// the row for the product that reads it.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 28) const bool ROUNDS = false;

layout(binding = 8) coherent buffer Y { float y[]; };
layout(binding = 9) coherent buffer Parts { float parts[]; };  // of each head and split: the largest score, the sum, outputs
layout(binding = 10) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = 11) writeonly buffer Codes { uint new_codes[]; };
layout(binding = 12) writeonly buffer Rows { uint new_rows[]; };
layout(binding = 13) writeonly buffer Sums { uint new_sums[]; };
layout(binding = 14) coherent buffer Turned { float turned[]; };  // or, where nothing is rounded, logarithms of sums
#define COUNTERS_AT 15
#include "last.glsl"
#define QUERIES HEADS
uint token_of_query(uint query) { return 0; }
#include "attention.glsl"
#include "softmax.glsl"

float source(uint k) { return y[k]; }
#define QUANTIZED_AT 15
#include "quantize.glsl"

shared float queries[HEADS * WIDTH];
shared float scores[HEADS * 64];
shared float largest[HEADS];
shared float sums[HEADS];
shared float factors[HEADS];
shared uint counts[HEADS];  // positions of a block

const uint kValuePairs = VALUE_WIDTH / 2, kValueStep = VALUE_STRIDE / 2;

void weigh(uint block, uint position, uint first, uint end) {
  uint lane = gl_LocalInvocationID.x, place = block + lane, pairs = WIDTH / 2;
  for (uint h = 0; h < HEADS; ++h) {
    float score = -kInfinity;
    if (is_seen(h, block, place, first, end)) {
      score = 0.0;
      uint at = (place * push[0] + gl_WorkGroupID.x / kChunks) * pairs;
      for (uint i = 0; i < pairs; ++i) {
        vec2 key = unpackHalf2x16(keys[at + i]);
        score = fma(key.x, queries[h * WIDTH + 2 * i], score);
        score = fma(key.y, queries[h * WIDTH + 2 * i + 1], score);
      }
      score = score_of(score, 0, head_of(h), place, position);
    }
    scores[h * 64 + lane] = score;
  }
  barrier();
  bool sees = lane < HEADS && has_choice(lane);
  if (lane < HEADS) {
    float most = largest[lane];
    for (uint i = 0; i < 64; ++i) most = max(most, scores[lane * 64 + i]);
    counts[lane] = sees ? min(64, end + 1 - block) : 0;
    factors[lane] = !sees ? 1.0 : largest[lane] == -kInfinity ? 0.0 : exp(largest[lane] - most);
    largest[lane] = most;
  }
  barrier();
  for (uint h = 0; h < HEADS; ++h) {
    float score = scores[h * 64 + lane];
    scores[h * 64 + lane] = score == -kInfinity ? 0.0 : exp(score - largest[h]);
  }
  barrier();
  if (sees) {
    precise float sum = sums[lane] * factors[lane];
    for (uint i = 0; i < 64; ++i) sum += scores[lane * 64 + i];
    sums[lane] = sum;
  }
}

void add_values(uint block, inout vec2 outputs[ITEMS]) {
  for (uint item = 0; item < ITEMS; ++item) {
    uint index = gl_LocalInvocationID.x + 64 * item;
    if (index >= HEADS * kValuePairs) break;
    uint h = index / kValuePairs, at = (block * push[0] + gl_WorkGroupID.x / kChunks) * kValueStep + index % kValuePairs;
    vec2 mean = outputs[item] * factors[h];
    uint count = counts[h];
    for (uint i = 0; i < count; ++i, at += push[0] * kValueStep) {
      mean = fma(vec2(scores[h * 64 + i]), unpackHalf2x16(values[at]), mean);
    }
    outputs[item] = mean;
  }
}

uint part_at(uint head, uint split) { return (head * push[8] + split) * (VALUE_WIDTH + 2); }

void leave(uint split, vec2 outputs[ITEMS]) {
  for (uint item = 0; item < ITEMS; ++item) {
    uint index = gl_LocalInvocationID.x + 64 * item, h = index / kValuePairs, pair = index % kValuePairs;
    if (index >= HEADS * kValuePairs || !is_there(h)) break;
    uint at = part_at(head_of(h), split);
    parts[at + 2 + 2 * pair] = outputs[item].x;
    parts[at + 3 + 2 * pair] = outputs[item].y;
    if (pair == 0) {
      parts[at] = largest[h];
      parts[at + 1] = sums[h];
    }
  }
}

// What was left of the splits first .. last of the workgroup's heads.
void combine(uint first, uint last) {
  for (uint index = gl_LocalInvocationID.x; index < HEADS * kValuePairs; index += 64) {
    uint h = index / kValuePairs, head = head_of(h), pair = index % kValuePairs;
    if (!is_there(h)) break;
    float all_largest = -kInfinity, all_sum = 0.0, before, now;
    vec2 all = vec2(0.0);
    for (uint split = first; split <= last; ++split) {
      uint at = part_at(head, split);
      float own_largest = parts[at];
      merge(all_largest, all_sum, own_largest, parts[at + 1], before, now);
      all = merged_outputs(all, vec2(parts[at + 2 + 2 * pair], parts[at + 3 + 2 * pair]), own_largest, before, now);
    }
    vec2 mean = finished(all_largest, all_sum, all, sink_of(0, head));
    y[head * VALUE_WIDTH + 2 * pair] = mean.x;
    y[head * VALUE_WIDTH + 2 * pair + 1] = mean.y;
    if (HAS_LSE && pair == 0) turned[head] = log_of_sum(all_largest, all_sum, sink_of(0, head));
  }
}

// push: attention.glsl; 14: workgroups of a split; from 15 on as quantize.glsl says
void main() {
  uint lane = gl_LocalInvocationID.x, position = positions[0], first = first_visible(position), end = end_of(position);
  for (uint i = lane; i < HEADS * WIDTH; i += 64) queries[i] = q[push[2] + head_of(i / WIDTH) * push[3] + i % WIDTH];
  if (lane < HEADS) {
    largest[lane] = -kInfinity;
    sums[lane] = 0.0;
  }
  vec2 outputs[ITEMS];
  for (uint i = 0; i < ITEMS; ++i) outputs[i] = vec2(0.0);
  uint split = gl_WorkGroupID.z;
  for (uint block = 256 * split; block < 256 * split + 256; block += 64) {
    if (!reaches(block, first, end)) continue;
    barrier();
    find_choices(block);
    if (!anyone_has_choice()) continue;
    weigh(block, position, first, end);
    add_values(block, outputs);
  }
  barrier();
  leave(split, outputs);
  if (!is_last_of(gl_WorkGroupID.x, push[8])) return;
  combine(first_split(first), end / 256);
  if (ROUNDS && is_last_of(push[14], push[14])) quantize_row(0, 0, 1);
}
