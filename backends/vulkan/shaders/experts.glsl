// Stacks of experts: an output of an input's PAIRS is of the expert that `residual` tells. Where IS_ORDERED, the outputs of a workgroup are
// of one expert, and places name them: where includers define ORDER_BINDING. With HEADS an output is of the expert whose head of its token
// it is, and places are ordered by heads. Includers have TOKENS, outputs of a workgroup.
// push[16] ..: first expert of the piece, its experts, experts of the stack, blocks of an expert (dense: rows), rows of an expert
layout(constant_id = 13) const uint PAIRS = 0;  // 0: there are no experts
layout(constant_id = 16) const uint HEADS = 0;  // of a token
#ifdef ORDER_BINDING
layout(constant_id = 15) const bool IS_ORDERED = false;
layout(binding = ORDER_BINDING) readonly buffer Order { uint order[]; };  // outputs; beyond all of them: none
uint named_at(uint place) { return order[place]; }
#else
const bool IS_ORDERED = false;
uint named_at(uint place) { return place; }
#endif

uint expert = 0;

// The output at a place; push[1] or more: there is none.
uint output_at(uint place) {
  if (HEADS == 0) return IS_ORDERED ? named_at(place) : place;
  uint all = push[1] / max(HEADS, 1), each = (all + TOKENS - 1) / TOKENS * TOKENS, token = place % each;
  return token < all ? token * HEADS + place / each : push[1];
}
// The same, and of a workgroup whose places begin at `first` another one where there is none.
uint output_or_other(uint place, uint first) {
  uint found = output_at(place);
  if (!IS_ORDERED && HEADS == 0) return min(found, push[1] - 1);
  return found < push[1] ? found : min(output_at(first), push[1] - 1);
}
// Whether the workgroup whose places begin here has outputs, of an expert in the piece.
bool choose(uint first) {
  if (PAIRS == 0) return true;
  uint output_index = output_at(first);
  if (output_index >= push[1]) return false;
  expert = HEADS != 0 ? output_index % max(HEADS, 1) : min(floatBitsToUint(residual[output_index]), push[18] - 1);
  return expert - push[16] < push[17];
}
uint input_of(uint output_index) { return output_index / max(PAIRS, 1); }
uint first_block() { return PAIRS == 0 ? 0 : (expert - push[16]) * push[19]; }
uint first_bias() { return PAIRS == 0 ? 0 : expert * push[20]; }
