// mote.attention for one token and one head of keys, with the heads of queries that share it, HEADS at a time. Positions are taken 64 at
// a time and in splits of 256, whatever the call, so that a token's result does not depend on its neighbours in a call.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint HEADS = 1;         // of queries, that a workgroup takes
layout(constant_id = 7) const uint TOGETHER = 1;      // of queries, that share a head of keys
layout(constant_id = 1) const uint WIDTH = 64;        // of a key
layout(constant_id = 2) const uint VALUE_WIDTH = 64;
layout(constant_id = 3) const bool IS_SPLIT = false;  // whether a workgroup takes one split and leaves it to combine.comp
layout(constant_id = 4) const bool HAS_SINKS = false;
layout(constant_id = 5) const bool HAS_SLOPES = false;
layout(constant_id = 8) const bool IS_BIDIRECTIONAL = false;  // whether positions behind a token are seen that the call fills
layout(constant_id = 9) const bool IS_CHUNKED = false;  // whether windows begin at multiples of their length
layout(constant_id = 10) const bool HAS_BIASES = false;
layout(constant_id = 11) const bool HAS_CHOSEN = false;
layout(constant_id = 6) const uint ITEMS = 1;         // pairs of outputs of an invocation: HEADS * VALUE_WIDTH / 2 / 64, rounded up

layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Keys { uint keys[]; };
layout(binding = 2) readonly buffer Values { uint values[]; };
layout(binding = 3) readonly buffer Positions { uint positions[]; };
layout(binding = 4) readonly buffer Sinks { float sinks[]; };
layout(binding = 5) readonly buffer Slopes { float slopes[]; };
layout(binding = 6) writeonly buffer Y { float y[]; };
layout(binding = 7) readonly buffer Biases { float biases[]; };  // [tokens, heads, distances]
layout(binding = 8) readonly buffer Chosen { int chosen[]; };    // [tokens, groups of heads, positions], ascending; negative: none

#include "softmax.glsl"

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

// The first of a row's chosen positions that is not below a place.
uint first_chosen(uint row, uint place) {
  uint begin = 0, end = push[13];
  while (begin < end) {
    uint middle = (begin + end) / 2;
    if (chosen[row + middle] < int(place)) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}
uint chosen_row(uint token, uint h) {
  return (token * push[12] + head_of(h) * push[12] / (push[0] * TOGETHER)) * push[13];
}
bool is_chosen(uint row, uint place) {
  uint at = first_chosen(row, place);
  return at < push[13] && chosen[row + at] == int(place);
}

// push: heads of keys, tokens, q: offset, stride of a head, of a token; window, scale, softcap; splits; first positions that are seen in spite of the window; stride of a token's sinks;
// distances; groups, chosen positions
void main() {
  uint lane = gl_LocalInvocationID.x, kv_head = gl_WorkGroupID.x / kChunks, token = gl_WorkGroupID.y, kv_heads = push[0];
  uint position = positions[token], pairs = WIDTH / 2, value_pairs = VALUE_WIDTH / 2;
  uint first_visible = push[5] == 0 || position < push[5] ? 0 : position + 1 - push[5], end = position;
  if (IS_CHUNKED) first_visible = position / push[5] * push[5];
  bool shares_choice = HAS_CHOSEN && chosen_row(token, 0) == chosen_row(token, HEADS - 1);
  if (IS_BIDIRECTIONAL) {
    end = positions[push[1] - 1];
    if (push[5] != 0) end = min(end, position + push[5] - 1);
  }
  for (uint i = lane; i < HEADS * WIDTH; i += 64) {
    queries[i] = q[push[2] + head_of(i / WIDTH) * push[3] + token * push[4] + i % WIDTH];
  }
  Total total;
  begin(total);
  uint split = IS_SPLIT ? gl_WorkGroupID.z : push[9] != 0 ? 0 : first_visible / 256, last = IS_SPLIT ? split : end / 256;
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
      if (shares_choice) {
        uint row = chosen_row(token, 0), at = first_chosen(row, block);
        if (at == push[13] || chosen[row + at] > int(block + 63)) continue;
      }
      barrier();
      uint place = block + lane;
      bool is_wanted = true;
      bool is_visible = place <= end && (place >= first_visible || place < push[9]);
      for (uint h = 0; h < HEADS; ++h) {
        float score = -kInfinity;
        if (HAS_CHOSEN && is_visible && (h == 0 || !shares_choice)) is_wanted = is_chosen(chosen_row(token, h), place);
        if (is_visible && is_wanted) {
          score = 0.0;
          uint at = (place * kv_heads + kv_head) * pairs;
          for (uint i = 0; i < pairs; ++i) {
            vec2 key = unpackHalf2x16(keys[at + i]);
            score = fma(key.x, queries[h * WIDTH + 2 * i], score);
            score = fma(key.y, queries[h * WIDTH + 2 * i + 1], score);
          }
          score *= float_at(6);
          if (float_at(7) != 0.0) score = float_at(7) * tanh_of(score / float_at(7));
          if (HAS_BIASES && place <= position && position - place < push[11]) {
            score += biases[(token * push[0] * TOGETHER + head_of(h)) * push[11] + position - place];
          }
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
        uint h = index / value_pairs, head = head_of(h);
        if (!is_there(h)) break;
        uint at = ((token * kv_heads * TOGETHER + head) * push[8] + split) * (VALUE_WIDTH + 2);
        y[at + 2 + 2 * (index % value_pairs)] = outputs[item].x;
        y[at + 3 + 2 * (index % value_pairs)] = outputs[item].y;
        if (index % value_pairs == 0) {
          y[at] = largest[h];
          y[at + 1] = sums[h];
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
  if (IS_SPLIT) return;
  for (uint item = 0; item < ITEMS; ++item) {
    uint index = lane + 64 * item;
    if (index >= HEADS * value_pairs) break;
    uint head = head_of(index / value_pairs);
    if (!is_there(index / value_pairs)) break;
    vec2 mean = finish(total, item, HAS_SINKS, HAS_SINKS ? sinks[token * push[10] + head] : 0.0);
    uint at = (token * kv_heads * TOGETHER + head) * VALUE_WIDTH + 2 * (index % value_pairs);
    y[at] = mean.x;
    y[at + 1] = mean.y;
  }
}
