// mote.attention for one token and one head of keys, with the heads of queries that share it, HEADS at a time. Positions are taken 64 at
// a time and in splits of 256, whatever the call, so that a token's result does not depend on its neighbours in a call. A single token's
// splits are workgroups: the last one of a head's draws them together, and the last one of all rounds the row for the product that reads it.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint HEADS = 1;         // of queries, that a workgroup takes
layout(constant_id = 7) const uint TOGETHER = 1;      // of queries, that share a head of keys
layout(constant_id = 1) const uint WIDTH = 64;        // of a key
layout(constant_id = 2) const uint VALUE_WIDTH = 64;
layout(constant_id = 3) const bool IS_SPLIT = false;  // whether a workgroup takes one split, of a single token
layout(constant_id = 4) const bool HAS_SINKS = false;
layout(constant_id = 5) const bool HAS_SLOPES = false;
layout(constant_id = 8) const bool IS_BIDIRECTIONAL = false;  // whether positions behind a token are seen that the call fills
layout(constant_id = 6) const uint ITEMS = 1;         // pairs of outputs of an invocation: HEADS * VALUE_WIDTH / 2 / 64, rounded up

layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Keys { uint keys[]; };
layout(binding = 2) readonly buffer Values { uint values[]; };
layout(binding = 3) readonly buffer Positions { uint positions[]; };
layout(binding = 4) readonly buffer Sinks { float sinks[]; };
layout(binding = 5) readonly buffer Slopes { float slopes[]; };
layout(binding = 6) coherent buffer Y { float y[]; };
layout(binding = 7) coherent buffer Parts { float parts[]; };  // of each head and split: the largest score, the sum, outputs
layout(binding = 8) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = 9) writeonly buffer Codes { uint new_codes[]; };
layout(binding = 10) writeonly buffer Rows { uvec2 new_rows[]; };
layout(binding = 11) writeonly buffer Sums { uint new_sums[]; };
layout(binding = 12) coherent buffer Turned { float turned[]; };
layout(constant_id = 27) const bool ROUNDS = false;
#define COUNTERS_AT 13
#include "last.glsl"
#include "softmax.glsl"

float source(uint k) { return y[k]; }
#define QUANTIZED_AT 11
#include "quantize.glsl"

shared float queries[HEADS * WIDTH];
shared float scores[HEADS * 64];
shared float largest[HEADS];
shared float sums[HEADS];
shared float factors[HEADS];

const uint kChunks = (TOGETHER + HEADS - 1) / HEADS;

// Of the workgroup's heads those that there are; the last one stands for the others.
bool is_there(uint h) { return gl_WorkGroupID.x % kChunks * HEADS + h < TOGETHER; }
uint head_of(uint h) {
  return gl_WorkGroupID.x / kChunks * TOGETHER + min(gl_WorkGroupID.x % kChunks * HEADS + h, TOGETHER - 1);
}

void write(uint item, uint token, Total total) {
  uint index = gl_LocalInvocationID.x + 64 * item, h = index / (VALUE_WIDTH / 2), head = head_of(h);
  if (index >= HEADS * VALUE_WIDTH / 2 || !is_there(h)) return;
  vec2 mean = finish(total, item, HAS_SINKS, HAS_SINKS ? sinks[head] : 0.0);
  uint at = (token * push[0] * TOGETHER + head) * VALUE_WIDTH + 2 * (index % (VALUE_WIDTH / 2));
  y[at] = mean.x;
  y[at + 1] = mean.y;
}

uint part_at(uint head, uint split) { return (head * push[8] + split) * (VALUE_WIDTH + 2); }

// What was left of the splits first .. last of the workgroup's heads.
void combine(uint first, uint last) {
  Total total;
  begin(total);
  for (uint item = 0; item < ITEMS; ++item) {
    uint index = gl_LocalInvocationID.x + 64 * item, pair = index % (VALUE_WIDTH / 2);
    if (index >= HEADS * VALUE_WIDTH / 2) break;
    for (uint split = first; split <= last; ++split) {
      uint at = part_at(head_of(index / (VALUE_WIDTH / 2)), split);
      add_split(total, item, parts[at], parts[at + 1], vec2(parts[at + 2 + 2 * pair], parts[at + 3 + 2 * pair]));
    }
    write(item, 0, total);
  }
}

// push: heads of keys, tokens, q: offset, stride of a head, of a token; window, scale, softcap; splits; first positions that are seen in
//   spite of the window; workgroups of a split; from 11 on as quantize.glsl says
void main() {
  uint lane = gl_LocalInvocationID.x, kv_head = gl_WorkGroupID.x / kChunks, token = gl_WorkGroupID.y, kv_heads = push[0];
  uint position = positions[token], pairs = WIDTH / 2, value_pairs = VALUE_WIDTH / 2;
  uint first_visible = push[5] == 0 || position < push[5] ? 0 : position + 1 - push[5], end = position;
  if (IS_BIDIRECTIONAL) {
    end = positions[push[1] - 1];
    if (push[5] != 0) end = min(end, position + push[5] - 1);
  }
  for (uint i = lane; i < HEADS * WIDTH; i += 64) {
    queries[i] = q[push[2] + head_of(i / WIDTH) * push[3] + token * push[4] + i % WIDTH];
  }
  Total total;
  begin(total);
  const uint first_split = push[9] != 0 ? 0 : first_visible / 256, last_split = end / 256;
  uint split = IS_SPLIT ? gl_WorkGroupID.z : first_split, last = IS_SPLIT ? split : last_split;
  for (; split <= last; ++split) {
    // Of this split alone.
    vec2 outputs[ITEMS];
    for (uint i = 0; i < ITEMS; ++i) outputs[i] = vec2(0.0);
    barrier();
    if (lane < HEADS) {
      largest[lane] = -kInfinity;
      sums[lane] = 0.0;
    }
    for (uint block = 256 * split; block < 256 * split + 256; block += 64) {
      if (block > end || (block + 63 < first_visible && block >= push[9])) continue;
      barrier();
      uint place = block + lane;
      bool is_visible = place <= end && (place >= first_visible || place < push[9]);
      for (uint h = 0; h < HEADS; ++h) {
        float score = -kInfinity;
        if (is_visible) {
          score = 0.0;
          uint at = (place * kv_heads + kv_head) * pairs;
          for (uint i = 0; i < pairs; ++i) {
            vec2 key = unpackHalf2x16(keys[at + i]);
            score = fma(key.x, queries[h * WIDTH + 2 * i], score);
            score = fma(key.y, queries[h * WIDTH + 2 * i + 1], score);
          }
          score *= float_at(6);
          if (float_at(7) != 0.0) score = float_at(7) * tanh_of(score / float_at(7));
          if (HAS_SLOPES) score += slopes[head_of(h)] * (float(place) - float(position));
        }
        scores[h * 64 + lane] = score;
      }
      barrier();
      if (lane < HEADS) {
        float most = largest[lane];
        for (uint i = 0; i < 64; ++i) most = max(most, scores[lane * 64 + i]);
        factors[lane] = largest[lane] == -kInfinity ? 0.0 : exp(largest[lane] - most);
        largest[lane] = most;
      }
      barrier();
      for (uint h = 0; h < HEADS; ++h) {
        float score = scores[h * 64 + lane];
        scores[h * 64 + lane] = score == -kInfinity ? 0.0 : exp(score - largest[h]);
      }
      barrier();
      if (lane < HEADS) {
        float sum = sums[lane] * factors[lane];
        for (uint i = 0; i < 64; ++i) sum += scores[lane * 64 + i];
        sums[lane] = sum;
      }
      uint count = min(64, end + 1 - block);
      for (uint item = 0; item < ITEMS; ++item) {
        uint index = lane + 64 * item;
        if (index >= HEADS * value_pairs) break;
        uint h = index / value_pairs;
        vec2 mean = outputs[item] * factors[h];
        uint at = (block * kv_heads + kv_head) * value_pairs + index % value_pairs;
        for (uint i = 0; i < count; ++i) {
          mean += scores[h * 64 + i] * unpackHalf2x16(values[at]);
          at += kv_heads * value_pairs;
        }
        outputs[item] = mean;
      }
    }
    barrier();
    if (IS_SPLIT) {
      for (uint item = 0; item < ITEMS; ++item) {
        uint index = lane + 64 * item;
        if (index >= HEADS * value_pairs) break;
        uint h = index / value_pairs;
        if (!is_there(h)) break;
        uint at = part_at(head_of(h), split);
        parts[at + 2 + 2 * (index % value_pairs)] = outputs[item].x;
        parts[at + 3 + 2 * (index % value_pairs)] = outputs[item].y;
        if (index % value_pairs == 0) {
          parts[at] = largest[h];
          parts[at + 1] = sums[h];
        }
      }
    } else {
      for (uint item = 0; item < ITEMS; ++item) {
        uint index = lane + 64 * item;
        if (index >= HEADS * value_pairs) break;
        uint h = index / value_pairs;
        add_split(total, item, largest[h], sums[h], outputs[item]);
      }
    }
  }
  if (!IS_SPLIT) {
    for (uint item = 0; item < ITEMS; ++item) write(item, token, total);
    return;
  }
  if (!is_last_of(gl_WorkGroupID.x, push[8])) return;
  combine(first_split, last_split);
  if (ROUNDS && is_last_of(push[10], push[10])) quantize_row(0);
}
