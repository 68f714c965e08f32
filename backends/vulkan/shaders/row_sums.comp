// For each row of a weight the sum of multiplier * code: what a zero point of the inputs is multiplied with. Once at load.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "tiles.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Weight { uint weight[]; };
layout(binding = 1) writeonly buffer Sums { int row_sums[]; };

uint digits_of(uint plane, uint begin, uint row) {
  uint sum = 0, mask = ((1u << plane) - 1) * 0x01010101u;
  for (uint word = 0; word < GROUP * plane / 32; ++word) {
    uint digits = weight[begin + 16 * word + row];
    for (uint h = 0; h < 8 / plane; ++h) {
      uint bytes = digits >> (plane * h) & mask;
      uint pairs = (bytes & 0x00ff00ffu) + (bytes >> 8 & 0x00ff00ffu);
      sum += (pairs & 0xffffu) + (pairs >> 16);
    }
  }
  return sum;
}

// push: columns, blocks, first row of the sums
void main() {
  uint index = gl_GlobalInvocationID.x, block = index / 16, row = index % 16;
  if (block >= push[1]) return;
  uint begin = block * block_words(push[0]);
  int total = 0;
  for (uint group = 0; group < push[0] / GROUP; ++group) {
    uint at = begin + group * kTileWords;
    uint sum = digits_of(kPlane0, at, row);
    at += 16 * GROUP * kPlane0 / 32;
    if (kPlane1 != 0) {
      sum += digits_of(max(kPlane1, 1), at, row) << kPlane0;
      at += 16 * GROUP * kPlane1 / 32;
    }
    if (kPlane2 != 0) {
      sum += digits_of(max(kPlane2, 1), at, row) << (kPlane0 + kPlane1);
      at += 16 * GROUP * kPlane2 / 32;
    }
    int code = BITS == 1 ? 2 * int(sum) - int(GROUP) : int(sum) - code_offset() * int(GROUP);
    total += bitfieldExtract(int(weight[at + row / 4]), int(8 * (row % 4)), 8) * code;
  }
  row_sums[push[2] + index] = total;
}
