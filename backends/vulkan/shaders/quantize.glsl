// A row of floats, after its norm and its turn, as 8-bit codes with a scale and a zero point, or with a scale for each 32 columns
// (docs/ops.md, "Numerics of activations"). The includer has QUANTIZED_AT, where the words in push begin, float source(k), new_codes,
// new_rows and new_sums.
layout(constant_id = 20) const uint NORM_LANES = 0;  // of its sum; 0: no norm, 16: that of a linear, 64: its rows go to `turned`
layout(constant_id = 21) const bool HAS_NORM_WEIGHT = false;
layout(constant_id = 22) const bool IS_SYMMETRIC = false;  // as rotated rows are rounded
layout(constant_id = 23) const bool IS_ROTATED = false;
layout(constant_id = 24) const uint KEPT = 0;    // columns, where shared memory has room for the row
layout(constant_id = 25) const uint LANES = 64;  // invocations of a workgroup
layout(constant_id = 26) const bool IS_PACKED = false;  // for integer dot products
layout(constant_id = 27) const bool IN_GROUPS = false;  // each 32 columns have a scale; sums are then of 16
#include "codes.glsl"

shared float kept[KEPT == 0 ? 1 : KEPT];
shared float lows[LANES < NORM_LANES ? NORM_LANES : LANES];
shared float highs[LANES];

uint kept_row;  // where the row begins in `turned`

float turn_get(uint k) { return KEPT != 0 ? kept[k] : turned[kept_row + k]; }
void turn_set(uint k, float value) {
  if (KEPT != 0) {
    kept[k] = value;
  } else {
    turned[kept_row + k] = value;
  }
}
void turn_wait() {
  if (KEPT == 0) memoryBarrierBuffer();
  barrier();
}
#include "turn.glsl"

// In push from QUANTIZED_AT on: columns, eps, what is added to the weight, columns of a turn, its scale
float normalized(uint k, float factor) {
  precise float value = source(k);
  if (NORM_LANES != 0) {
    value = value * factor;
    if (HAS_NORM_WEIGHT) {
      precise float weight = norm_weight[k] + float_at(QUANTIZED_AT + 2);
      value = value * weight;
    }
  }
  return value;
}

float factor_of_norm(uint columns) {
  for (uint l = gl_LocalInvocationID.x; l < NORM_LANES; l += LANES) {
    precise float sum = 0.0;
    for (uint k = l; k < columns; k += NORM_LANES) {
      float value = source(k);
      sum = fma(value, value, sum);
    }
    lows[l] = sum;
  }
  barrier();
  precise float total;
  if (NORM_LANES == 64) {
    SUM_64_LANES(total, lows)
  } else {
    total = SUM_16_LANES(lows);
  }
  precise float mean = total / float(columns);
  precise float root = sqrt(mean + float_at(QUANTIZED_AT + 1));
  precise float factor = 1.0 / root;
  barrier();
  return factor;
}

#define AT(k) (KEPT != 0 || IS_ROTATED ? turn_get(k) : normalized(k, factor))

// The least and the greatest element, or 0.
vec2 bounds(uint columns, float factor) {
  uint lane = gl_LocalInvocationID.x;
  float low = 0.0, high = 0.0;
  for (uint k = lane; k < columns; k += LANES) {
    float value = AT(k);
    low = min(low, value);
    high = max(high, value);
  }
  lows[lane] = low;
  highs[lane] = high;
  barrier();
  for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes) {
      lows[lane] = min(lows[lane], lows[lane + half_lanes]);
      highs[lane] = max(highs[lane], highs[lane + half_lanes]);
    }
    barrier();
  }
  return vec2(lows[0], highs[0]);
}

#define kLeastScale uintBitsToFloat(0x00800000u)

// Of numbers about 0, the largest of which is `most`.
float symmetric_scale(float most) {
  precise float scale = most / 127.0;
  return scale < kLeastScale ? 0.0 : scale;
}

uint code_of(float value, float reciprocal, float zero, float least) {
  precise float scaled = value * reciprocal;
  return uint(int(clamp(roundEven(clamp(scaled, -512.0, 512.0)) + zero, least, 127.0)) + 128);
}

// The groups from `first` on, `step` apart.
void round_in_groups(uint row, uint columns, float factor, uint first, uint step) {
  for (uint group = first; group < columns / 32; group += step) {
    uint index = row * (columns / 32) + group;
    float most = 0.0;
    for (uint k = 32 * group; k < 32 * group + 32; ++k) most = max(most, abs(AT(k)));
    float scale = symmetric_scale(most);
    precise float reciprocal = scale == 0.0 ? 0.0 : 1.0 / scale;
    new_rows[index] = floatBitsToUint(scale);
    for (uint part = 0; part < 2; ++part) {
      uint sum = 0;
      for (uint quad = 4 * part; quad < 4 * part + 4; ++quad) {
        uint q[4];
        [[unroll]] for (uint j = 0; j < 4; ++j) {
          q[j] = code_of(AT(32 * group + 4 * quad + j), reciprocal, 0.0, -127.0);
          sum += q[j];
        }
        write_codes(row * (columns / 4) + 8 * group + quad, q);
      }
      new_sums[2 * index + part] = sum - 16 * 128;
    }
  }
}

// In groups, a row can be shared by `parts` workgroups if nothing is done to it before.
void quantize_row(uint row, uint part, uint parts) {
  uint lane = gl_LocalInvocationID.x, columns = push[QUANTIZED_AT];
  kept_row = row * columns;
  precise float factor = 1.0;
  if (NORM_LANES != 0) factor = factor_of_norm(columns);
  if (NORM_LANES == 64) {
    for (uint k = lane; k < columns; k += LANES) turned[kept_row + k] = normalized(k, factor);
  }
  if (KEPT != 0 || IS_ROTATED) {
    for (uint k = lane; k < columns; k += LANES) turn_set(k, normalized(k, factor));
    turn_wait();
    if (IS_ROTATED) turn_row(0, columns, push[QUANTIZED_AT + 3], float_at(QUANTIZED_AT + 4), false);
  }
  if (IN_GROUPS) {
    round_in_groups(row, columns, factor, part * LANES + lane, parts * LANES);
    return;
  }
  vec2 range = bounds(columns, factor);
  float low = range.x, high = range.y;
  precise float scale, reciprocal;
  float zero = 0.0;
  if (IS_SYMMETRIC) {
    scale = symmetric_scale(max(high, -low));
    reciprocal = scale == 0.0 ? 0.0 : 1.0 / scale;
  } else {
    precise float width = high - low;
    scale = max(width / 255.0, kLeastScale);
    precise float ratio = low / scale;
    zero = clamp(-128.0 - roundEven(ratio), -128.0, 127.0);
    reciprocal = 1.0 / scale;
  }
  if (lane == 0) {
    new_rows[2 * row] = floatBitsToUint(scale);
    new_rows[2 * row + 1] = uint(int(zero));
  }
  for (uint group = lane; group < columns / 32; group += LANES) {
    uint sum = 0;
    for (uint quad = 0; quad < 8; ++quad) {
      uint q[4];
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        q[j] = code_of(AT(32 * group + 4 * quad + j), reciprocal, zero, -128.0);
        sum += q[j];
      }
      write_codes(row * (columns / 4) + 8 * group + quad, q);
    }
    new_sums[row * (columns / 32) + group] = sum;
  }
}
