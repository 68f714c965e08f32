// One element of a row of `weight`, of tiles or dense; DENSE says which. push[0] is the number of columns.
uint code_of(uint begin, uint row, uint column) {
  uint code = 0, shift = 0;
  uint planes[3] = {kPlane0, kPlane1, kPlane2};
  for (uint i = 0; i < 3; ++i) {
    uint plane = planes[i];
    if (plane == 0) break;
    uint columns = 32 / plane, in_block = column % columns;
    uint word = weight[begin + 16 * (column / columns) + row];
    code |= (word >> (8 * (in_block % 4) + plane * (in_block / 4)) & ((1u << plane) - 1)) << shift;
    shift += plane;
    begin += 16 * GROUP * plane / 32;
  }
  return code;
}

float element(uint row, uint column) {
  uint columns = push[0];
  if (DENSE == 1) return uintBitsToFloat(weight[row * columns + column]);
  if (DENSE != 0) {
    uint index = row * columns + column, pair = weight[index / 2];
    uint bits = index % 2 == 0 ? pair & 0xffff : pair >> 16;
    return DENSE == 2 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16);
  }
  uint block = row / 16 * block_words(columns), in_block = row % 16;
  uint begin = block + column / GROUP * kTileWords;
  int code = int(code_of(begin, in_block, column % GROUP));
  code = BITS == 1 ? 2 * code - 1 : code - code_offset();
  int multiplier = bitfieldExtract(int(weight[begin + kCodeWords + in_block / 4]), int(8 * (in_block % 4)), 8);
  return uintBitsToFloat(weight[block + columns / GROUP * kTileWords + in_block]) * float(multiplier * code);
}
