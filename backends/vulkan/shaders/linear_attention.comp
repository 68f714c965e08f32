// mote.linear_attention: LANES invocations share a row of a head's state, which they keep from token to token; each has every LANES-th
// element. Sums over a row: element n belongs to lane n % 16 of 16, in ascending order, as on the CPU.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint LANES = 16;  // a power of two, at most 16
layout(constant_id = 1) const uint WIDTH = 128;
layout(constant_id = 2) const uint ITEMS = 8;   // elements of an invocation: WIDTH / LANES, rounded up
layout(constant_id = 3) const uint DECAYS = 0;  // of a head: none, one, or WIDTH
layout(constant_id = 4) const bool HAS_BETA = false;

layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer K { float k[]; };
layout(binding = 2) readonly buffer V { float v[]; };
layout(binding = 3) readonly buffer Decay { float decay[]; };
layout(binding = 4) readonly buffer Beta { float beta[]; };
// SlotPlan
layout(binding = 5) readonly buffer Plan {
  uint start, source, first_replayed, replayed, first_recorded, recorded, num_copies;
  uint copies[];  // tokens and slot of each
};
layout(binding = 6) buffer Slots { float slots[]; };  // [slots, heads, rows, WIDTH]
layout(binding = 7) buffer Rows { float rows[]; };    // a ring of keys, what was added along them, decays
layout(binding = 8) writeonly buffer Y { float y[]; };

shared float parts[2 * 64];  // sums of lanes, of two sums in turn

const uint kSums = 16 / LANES;  // of the 16 lanes, that an invocation has
const uint kZero = 0xffffffffu;

// push: tokens, heads, heads of a head of keys, rows of a head, rows of the ring, offset and strides of a token, of a head, of an element: of q,
// k, v, decay, beta
uint at(uint operand, uint token, uint head) {
  uint first = 5 + 4 * operand;
  return push[first] + token * push[first + 1] + head * push[first + 2];
}

// Sums lie 8, 4, 2 and 1 lanes apart when they are added, as on the CPU.
#define ADD_HALVES(sums, count)                                    \
  for (uint half_ = (count) / 2; half_ > 0; half_ /= 2) {          \
    for (uint i = 0; i < half_; ++i) sums[i] = sums[i] + sums[i + half_]; \
  }

// Of the invocations of a row.
float sum_of_row(uint first) {
  precise float sums[16];
  for (uint i = 0; i < LANES; ++i) sums[i] = parts[first + i];
  ADD_HALVES(sums, LANES)
  return sums[0];
}

void main() {
  uint lane = gl_LocalInvocationID.x % LANES, of_group = gl_LocalInvocationID.x / LANES;
  uint heads = push[1], per_head = push[3], num_rows = heads * per_head;
  uint row = group_index() * (64 / LANES) + of_group;
  bool is_there = row < num_rows;
  row = min(row, num_rows - 1);
  uint head = row / per_head, element = row % per_head, key_head = head / push[2];
  uint keys = heads / push[2] * WIDTH, row_floats = keys + num_rows + heads * DECAYS;
  uint elements = num_rows * WIDTH;  // of a slot
  precise float state[ITEMS];
  for (uint i = 0; i < ITEMS; ++i) {
    uint n = lane + i * LANES;
    state[i] = n < WIDTH && source != kZero ? slots[source * elements + row * WIDTH + n] : 0.0;
  }
  for (uint t = 0; t < replayed; ++t) {
    uint from = (first_replayed + t) % push[4] * row_floats;
    float update = rows[from + keys + row];
    for (uint i = 0; i < ITEMS; ++i) {
      uint n = lane + i * LANES;
      if (n >= WIDTH) break;
      precise float kept = state[i];
      if (DECAYS != 0) kept *= rows[from + keys + num_rows + head * DECAYS + (DECAYS == 1 ? 0 : n)];
      state[i] = fma(rows[from + key_head * WIDTH + n], update, kept);
    }
  }
  uint copy = 0, step = 0;
  for (uint t = 0;; ++t) {
    while (copy < num_copies && copies[2 * copy] == t) {
      for (uint i = 0; i < ITEMS; ++i) {
        uint n = lane + i * LANES;
        if (is_there && n < WIDTH) slots[copies[2 * copy + 1] * elements + row * WIDTH + n] = state[i];
      }
      ++copy;
    }
    if (t == push[0]) break;
    uint k_at = at(1, t, key_head), q_at = at(0, t, key_head), decay_at = DECAYS == 0 ? 0 : at(3, t, head);
    for (uint i = 0; i < ITEMS && DECAYS != 0; ++i) {
      uint n = lane + i * LANES;
      if (n >= WIDTH) break;
      precise float kept = decay[decay_at + (DECAYS == 1 ? 0 : n * push[20])] * state[i];
      state[i] = kept;
    }
    precise float update = v[at(2, t, head) + element * push[16]];
    if (HAS_BETA) {
      precise float known[kSums];
      for (uint i = 0; i < kSums; ++i) known[i] = 0.0;
      for (uint i = 0; i < ITEMS; ++i) {
        uint n = lane + i * LANES;
        if (n >= WIDTH) break;
        known[i % kSums] = fma(k[k_at + n * push[12]], state[i], known[i % kSums]);
      }
      ADD_HALVES(known, kSums)
      float own = known[0];
      if (LANES > 1) {
        uint first = step++ % 2 * 64;
        parts[first + gl_LocalInvocationID.x] = own;
        barrier();
        own = sum_of_row(first + of_group * LANES);
      }
      update = beta[at(4, t, head)] * (update - own);
    }
    uint to = t + recorded >= push[0] ? (first_recorded + t + recorded - push[0]) % push[4] * row_floats : kZero;
    if (to != kZero && is_there && lane == 0) rows[to + keys + row] = update;
    precise float sums[kSums];
    for (uint i = 0; i < kSums; ++i) sums[i] = 0.0;
    for (uint i = 0; i < ITEMS; ++i) {
      uint n = lane + i * LANES;
      if (n >= WIDTH) break;
      float key = k[k_at + n * push[12]];
      state[i] = fma(key, update, state[i]);
      sums[i % kSums] = fma(q[q_at + n * push[8]], state[i], sums[i % kSums]);
      if (to == kZero || !is_there || element != 0) continue;
      if (head % push[2] == 0) rows[to + key_head * WIDTH + n] = key;
      if (DECAYS > 1) rows[to + keys + num_rows + head * DECAYS + n] = decay[decay_at + n * push[20]];
      if (DECAYS == 1 && n == 0) rows[to + keys + num_rows + head] = decay[decay_at];
    }
    ADD_HALVES(sums, kSums)
    float total = sums[0];
    if (LANES > 1) {
      uint first = step++ % 2 * 64;
      parts[first + gl_LocalInvocationID.x] = total;
      barrier();
      if (lane == 0) total = sum_of_row(first + of_group * LANES);
    }
    if (is_there && lane == 0) y[t * num_rows + row] = total;
  }
}
