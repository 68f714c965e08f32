// Stacks of experts: an output of an input's PAIRS is of the expert that `residual` tells.
// push[16] ..: first expert of the piece, its experts, experts of the stack, blocks of an expert (dense: rows), rows of an expert
layout(constant_id = 13) const uint PAIRS = 0;  // 0: there are no experts

uint expert = 0;

// Whether the piece has the expert of an output.
bool choose(uint output_index) {
  if (PAIRS == 0) return true;
  expert = min(floatBitsToUint(residual[output_index]), push[18] - 1);
  return expert - push[16] < push[17];
}
uint input_of(uint output_index) { return output_index / max(PAIRS, 1); }
uint first_block() { return PAIRS == 0 ? 0 : (expert - push[16]) * push[19]; }
uint first_bias() { return PAIRS == 0 ? 0 : expert * push[20]; }
