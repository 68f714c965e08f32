// mote.rms_norm and mote.layer_norm, and the norms that are parts of linears. Element k is added in lane k % 64, of a linear's norm in
// lane k % 16, as on the CPU.
// KIND: 0: rms, 1: layer, 2: rms of a linear
float total_of_lanes() {
  if (KIND == 2) {
    precise float sixteen = SUM_16_LANES(parts);
    return sixteen;
  }
  precise float all;
  SUM_64_LANES(all, parts)
  return all;
}

// push: columns, rows, rows of the inner dimension, offset, outer stride, inner stride, eps, what is added to the weight
void norm_rows(uint group) {
  uint row = group, lane = gl_LocalInvocationID.x;
  if (row >= push[1]) return;
  uint own_lanes = KIND == 2 ? 16 : 64, columns = push[0], begin = push[3] + row / push[2] * push[4] + row % push[2] * push[5];
  precise float mean = 0.0, sum = 0.0;
  if (KIND == 1) {
    for (uint k = lane; k < columns; k += 64) sum = uintBitsToFloat(IN_0(begin + k)) + sum;
    parts[lane] = sum;
    barrier();
    mean = total_of_lanes() / float(columns);
    sum = 0.0;
    barrier();
  }
  for (uint k = lane; k < columns && lane < own_lanes; k += own_lanes) {
    precise float value = KIND == 1 ? uintBitsToFloat(IN_0(begin + k)) - mean : uintBitsToFloat(IN_0(begin + k));
    sum = fma(value, value, sum);
  }
  parts[lane] = sum;
  barrier();
  precise float root = sqrt(total_of_lanes() / float(columns) + float_at(6));
  precise float factor = 1.0 / root;
  for (uint k = lane; k < columns; k += 64) {
    precise float value = KIND == 1 ? uintBitsToFloat(IN_0(begin + k)) - mean : uintBitsToFloat(IN_0(begin + k));
    value = value * factor;
    if (HAS_WEIGHT) {
      precise float weight = uintBitsToFloat(IN_1(k)) + float_at(7);
      value = value * weight;
    }
    if (HAS_BIAS) value = value + uintBitsToFloat(IN_2(k));
    OUT_3(row * columns + k, floatBitsToUint(value));
  }
}
