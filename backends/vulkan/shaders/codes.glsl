// Codes + 128 of 4 neighbouring columns a, b, c, d: bytes of a word where IS_PACKED, else halves of words so that one
// multiplication of 32 bits makes two products: the first word holds c in its lower half and a in its upper one, the second d
// and b. The includer has IS_PACKED and new_codes.
void write_codes(uint quad, uint q[4]) {
  if (IS_PACKED) {
    new_codes[quad] = q[0] | q[1] << 8 | q[2] << 16 | q[3] << 24;
  } else {
    new_codes[2 * quad] = q[2] | q[0] << 16;
    new_codes[2 * quad + 1] = q[3] | q[1] << 16;
  }
}
