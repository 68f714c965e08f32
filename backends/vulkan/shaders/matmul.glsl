// Products of two activations, an invocation for each element; sums in ascending order.
// push: matrices of the inner dimension, rows, columns, what is summed, elements of y; a, b: offset and 4 strides
void matmul_elements(uint group) {
  uint element = 64 * group + gl_LocalInvocationID.x;
  if (element >= push[4]) return;
  uint n = element % push[2], m = element / push[2] % push[1], matrix = element / push[2] / push[1];
  uint outer = matrix / push[0], inner = matrix % push[0];
  uint left = push[5] + outer * push[6] + inner * push[7] + m * push[8];
  uint right = push[10] + outer * push[11] + inner * push[12] + n * push[14];
  precise float sum = 0.0;
  for (uint k = 0; k < push[3]; ++k) {
    sum = fma(uintBitsToFloat(IN_0(left + k * push[9])), uintBitsToFloat(IN_1(right + k * push[13])), sum);
  }
  OUT_2(element, floatBitsToUint(sum));
}
