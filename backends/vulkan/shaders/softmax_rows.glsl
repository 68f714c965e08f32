// Softmax of each row, or its logarithm.
float largest_of_row(float value) {
  uint own = gl_LocalInvocationID.x;
  parts[own] = value;
  barrier();
  for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (own_lane() < half_lanes) parts[own] = max(parts[own], parts[own + half_lanes]);
    barrier();
  }
  float result = parts[own - own_lane()];
  barrier();
  return result;
}

float sum_of_row(float value) {
  uint own = gl_LocalInvocationID.x;
  parts[own] = value;
  barrier();
  for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
    if (own_lane() < half_lanes) parts[own] += parts[own + half_lanes];
    barrier();
  }
  return parts[own - own_lane()];
}

void softmax_rows(uint group) {
  uint lane = own_lane(), row = own_row(group), columns = row < push[1] ? push[0] : 0, begin = begin_of(row);
  float largest = -kInfinity;
  for (uint k = lane; k < columns; k += LANES) largest = max(largest, uintBitsToFloat(IN_0(begin + k * push[6])));
  largest = largest_of_row(largest);
  precise float sum = 0.0;
  for (uint k = lane; k < columns; k += LANES) sum += exp(uintBitsToFloat(IN_0(begin + k * push[6])) - largest);
  sum = sum_of_row(sum);
  for (uint k = lane; k < columns; k += LANES) {
    precise float value = uintBitsToFloat(IN_0(begin + k * push[6])) - largest;
    if (IS_LOG) value = value - log(sum);
    else value = exp(value) / sum;
    OUT_1(row * push[0] + k, floatBitsToUint(value));
  }
}
