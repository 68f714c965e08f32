// A row of floats, after its norm, as 8-bit codes with a scale and a zero point (docs/ops.md, "Numerics of activations").
// Codes + 128 lie in halves of words so that one multiplication of 32 bits makes two products: of 4 columns a, b, c, d
// the first word holds c in its lower half and a in its upper one, the second d and b.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool HAS_NORM = false;
layout(constant_id = 1) const bool HAS_WEIGHT = false;
layout(constant_id = 2) const bool IS_SYMMETRIC = false;  // as rotated rows are rounded

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weight { float norm_weight[]; };
layout(binding = 2) writeonly buffer Codes { uvec2 codes[]; };
layout(binding = 3) writeonly buffer Rows { uvec2 rows[]; };
layout(binding = 4) writeonly buffer Sums { uint sums[]; };

shared float lanes[64];
shared float lows[64];
shared float highs[64];

// push: columns, rows, rows of the inner dimension, offset, outer stride, inner stride, eps, what is added to the weight
precise float normalized(uint begin, uint k, float factor) {
  precise float value = x[begin + k];
  if (HAS_NORM) {
    value = value * factor;
    if (HAS_WEIGHT) {
      precise float weight = norm_weight[k] + float_at(7);
      value = value * weight;
    }
  }
  return value;
}

void main() {
  uint row = group_index(), lane = gl_LocalInvocationID.x;
  if (row >= push[1]) return;
  uint columns = push[0], begin = push[3] + row / push[2] * push[4] + row % push[2] * push[5];
  precise float factor = 1.0;
  if (HAS_NORM) {
    if (lane < 16) {
      precise float sum = 0.0;
      for (uint k = lane; k < columns; k += 16) {
        float value = x[begin + k];
        sum = fma(value, value, sum);
      }
      lanes[lane] = sum;
    }
    barrier();
    precise float mean = SUM_16_LANES(lanes) / float(columns);
    precise float root = sqrt(mean + float_at(6));
    factor = 1.0 / root;
  }
  float low = 0.0, high = 0.0;
  for (uint k = lane; k < columns; k += 64) {
    float value = normalized(begin, k, factor);
    low = min(low, value);
    high = max(high, value);
  }
  lows[lane] = low;
  highs[lane] = high;
  barrier();
  for (uint half_lanes = 32; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) {
      lows[lane] = min(lows[lane], lows[lane + half_lanes]);
      highs[lane] = max(highs[lane], highs[lane + half_lanes]);
    }
    barrier();
  }
  low = lows[0];
  high = highs[0];
  precise float scale, reciprocal;
  float zero = 0.0;
  const float least = uintBitsToFloat(0x00800000u);
  if (IS_SYMMETRIC) {
    scale = max(high, -low) / 127.0;
    if (scale < least) scale = 0.0;
    reciprocal = scale == 0.0 ? 0.0 : 1.0 / scale;
  } else {
    precise float range = high - low;
    scale = max(range / 255.0, least);
    precise float ratio = low / scale;
    zero = clamp(-128.0 - roundEven(ratio), -128.0, 127.0);
    reciprocal = 1.0 / scale;
  }
  if (lane == 0) rows[row] = uvec2(floatBitsToUint(scale), uint(int(zero)));
  for (uint group = lane; group < columns / 32; group += 64) {
    uint sum = 0;
    for (uint quad = 0; quad < 8; ++quad) {
      uint q[4];
      for (uint j = 0; j < 4; ++j) {
        precise float scaled = normalized(begin, 32 * group + 4 * quad + j, factor) * reciprocal;
        float code = clamp(roundEven(clamp(scaled, -512.0, 512.0)) + zero, -128.0, 127.0);
        q[j] = uint(int(code) + 128);
        sum += q[j];
      }
      codes[row * (columns / 4) + 8 * group + quad] = uvec2(q[2] | q[0] << 16, q[3] | q[1] << 16);
    }
    sums[row * (columns / 32) + group] = sum;
  }
}
