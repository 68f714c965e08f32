// A row of floats as 8-bit codes, each 32 columns with a scale of their own (docs/ops.md, "Groups"). Sums are of the codes
// of 16 columns.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool IS_PACKED = false;  // for integer dot products
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Codes { uint new_codes[]; };
layout(binding = 2) writeonly buffer Scales { float scales[]; };
layout(binding = 3) writeonly buffer Sums { int sums[]; };
#include "codes.glsl"

// push: columns, rows, rows of the inner dimension, offset, outer stride, inner stride
void main() {
  uint groups = push[0] / 32, index = 64 * group_index() + gl_LocalInvocationID.x, row = index / groups, group = index % groups;
  if (row >= push[1]) return;
  uint begin = push[3] + row / push[2] * push[4] + row % push[2] * push[5] + 32 * group;
  float most = 0.0;
  for (uint k = 0; k < 32; ++k) most = max(most, abs(x[begin + k]));
  precise float scale = most / 127.0;
  if (scale < uintBitsToFloat(0x00800000u)) scale = 0.0;
  precise float reciprocal = scale == 0.0 ? 0.0 : 1.0 / scale;
  scales[index] = scale;
  for (uint part = 0; part < 2; ++part) {
    int sum = 0;
    for (uint quad = 4 * part; quad < 4 * part + 4; ++quad) {
      uint q[4];
      for (uint j = 0; j < 4; ++j) {
        precise float scaled = x[begin + 4 * quad + j] * reciprocal;
        int code = int(clamp(roundEven(clamp(scaled, -512.0, 512.0)), -127.0, 127.0));
        sum += code;
        q[j] = uint(code + 128);
      }
      write_codes(row * (push[0] / 4) + 8 * group + quad, q);
    }
    sums[2 * index + part] = sum;
  }
}
