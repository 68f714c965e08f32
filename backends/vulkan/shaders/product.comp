// mote.linear and mote.gated_linear over tiles with int8 activations: sums of integers are exact, and scaled in the order
// of docs/ops.md. A workgroup makes 16 rows for TOKENS tokens; 4 invocations share a row's groups.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "gates.glsl"
#include "tiles.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint TOKENS = 1;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(constant_id = 4) const bool HAS_RESIDUAL = false;
layout(constant_id = 5) const uint GATE = 0;

layout(binding = 0) readonly buffer Codes { uvec2 codes[]; };
layout(binding = 1) readonly buffer Rows { uvec2 rows[]; };
layout(binding = 2) readonly buffer Sums { uint sums[]; };
layout(binding = 3) readonly buffer Weight { uint weight[]; };
layout(binding = 4) readonly buffer RowSums { int row_sums[]; };
layout(binding = 5) readonly buffer Bias { float bias[]; };
layout(binding = 6) readonly buffer Residual { float residual[]; };
layout(binding = 7) writeonly buffer Y { float y[]; };

shared int parts[4 * 16 * TOKENS];

int totals[TOKENS];
uint tokens[TOKENS];  // of the call; those behind its end repeat the last one

// push: columns, tokens, rows, first row of the piece, columns of y, residual: offset and stride of a token
//   blocks to the rows of `up`
void add_plane(uint plane, uint begin, uint row, uint quads, uint group, uint shift) {
  uint mask = ((1u << plane) - 1) * 0x01010101u;
  for (uint word = 0; word < GROUP * plane / 32; ++word) {
    uint digits = weight[begin + 16 * word + row];
    if (plane == 8) {
      for (uint t = 0; t < TOKENS; ++t) {
        uvec2 q = codes[tokens[t] * quads + group * (GROUP / 4) + word];
        uint sum = (digits & 0xff) * (q.x >> 16) + (digits >> 8 & 0xff) * (q.y >> 16) +
                   (digits >> 16 & 0xff) * (q.x & 0xffff) + (digits >> 24) * (q.y & 0xffff);
        totals[t] += int(sum);
      }
    } else {
      for (uint t = 0; t < TOKENS; ++t) {
        uint sum = 0, at = tokens[t] * quads + group * (GROUP / 4) + word * (8 / plane);
        for (uint h = 0; h < 8 / plane; ++h) {
          uint bytes = digits >> (plane * h) & mask;
          uvec2 q = codes[at + h];
          sum += (bytes & 0x00ff00ffu) * q.x + (bytes >> 8 & 0x00ff00ffu) * q.y;
        }
        totals[t] += int((sum >> 16) << shift);
      }
    }
  }
}

void multiply(uint block, uint row, uint split) {
  uint columns = push[0], quads = columns / 4, begin = block * block_words(columns);
  int sums_of_rows[TOKENS];
  for (uint t = 0; t < TOKENS; ++t) sums_of_rows[t] = 0;
  for (uint group = split; group < columns / GROUP; group += 4) {
    for (uint t = 0; t < TOKENS; ++t) totals[t] = 0;
    uint at = begin + group * kTileWords;
    add_plane(kPlane0, at, row, quads, group, 0);
    if (kPlane1 != 0) add_plane(max(kPlane1, 1), at + 16 * GROUP * kPlane0 / 32, row, quads, group, kPlane0);
    if (kPlane2 != 0) {
      add_plane(max(kPlane2, 1), at + 16 * GROUP * (kPlane0 + kPlane1) / 32, row, quads, group,
                kPlane0 + kPlane1);
    }
    int multiplier = bitfieldExtract(int(weight[at + kCodeWords + row / 4]), int(8 * (row % 4)), 8);
    for (uint t = 0; t < TOKENS; ++t) {
      uint sum = 0;
      for (uint i = 0; i < GROUP / 32; ++i) sum += sums[tokens[t] * (columns / 32) + group * (GROUP / 32) + i];
      int product = BITS == 1 ? 2 * totals[t] - int(sum) : totals[t] - code_offset() * int(sum);
      sums_of_rows[t] += multiplier * product;
    }
  }
  for (uint t = 0; t < TOKENS; ++t) parts[(split * TOKENS + t) * 16 + row] = sums_of_rows[t];
}

precise float finished(uint block, uint row, uint t) {
  int sum = 0;
  for (uint split = 0; split < 4; ++split) sum += parts[(split * TOKENS + t) * 16 + row];
  uint index = push[3] + 16 * block + row;
  uvec2 of_row = rows[tokens[t]];
  int exact = sum - (128 + int(of_row.y)) * row_sums[index];
  float scale = uintBitsToFloat(weight[block * block_words(push[0]) + push[0] / GROUP * kTileWords + row]);
  precise float scaled = scale * float(exact);
  precise float value = uintBitsToFloat(of_row.x) * scaled;
  if (HAS_BIAS) value = value + bias[index];
  return value;
}

void main() {
  uint lane = gl_LocalInvocationID.x, row = lane % 16, split = lane / 16, block = gl_WorkGroupID.x;
  uint first_token = gl_WorkGroupID.y * TOKENS;
  for (uint t = 0; t < TOKENS; ++t) tokens[t] = min(first_token + t, push[1] - 1);
  multiply(block, row, split);
  barrier();
  float gates[TOKENS];
  if (GATE != 0) {
    for (uint t = split; t < TOKENS; t += 4) gates[t] = gate_of(GATE, finished(block, row, t));
    barrier();
    block += push[7];
    multiply(block, row, split);
    barrier();
  }
  uint index = push[3] + 16 * gl_WorkGroupID.x + row;
  for (uint t = split; t < TOKENS; t += 4) {
    uint token = first_token + t;
    if (token >= push[1] || index >= push[2]) continue;
    precise float value = finished(block, row, t);
    if (GATE != 0) value = gates[t] * value;
    if (HAS_RESIDUAL) value = value + residual[push[5] + token * push[6] + index];
    y[token * push[4] + index] = value;
  }
}
