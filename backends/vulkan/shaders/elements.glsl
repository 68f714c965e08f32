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
    begin += 16 * kTileColumns * plane / 32;
  }
  return code;
}

int byte_at(uint word, uint row) { return bitfieldExtract(int(weight[word + row / 4]), int(8 * (row % 4)), 8); }
float half_at(uint word, uint row) {
  vec2 both = unpackHalf2x16(weight[word + row / 2]);
  return row % 2 == 0 ? both.x : both.y;
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
  uint tile = block + tile_at(column), group = column % kTileColumns / GROUP;
  uint number = code_of(tile, in_block, column % kTileColumns);
  int code = HAS_CODEBOOK ? codebook_at(number) : BITS == 1 ? 2 * int(number) - 1 : int(number) - code_offset();
  int multiplier = kMultipliers != 0 ? byte_at(tile + kCodeWords + 4 * group, in_block) : 1;
  float row_scale = HAS_ROW_SCALES ? uintBitsToFloat(weight[block + row_scales_at(columns) + in_block]) : 1.0;
  if (SCALE_COLUMNS == 0) return row_scale * float(multiplier * code);
  uint scales = block + column / kSpanColumns * kSpanWords + 8 * (column % kSpanColumns / max(SCALE_COLUMNS, 1));
  float scale = half_at(scales, in_block);
  precise float value = scale * float(multiplier) * float(code);
  if (LOW != 0) {
    float low = kLows != 0 ? float(byte_at(tile + kLowsAt + 4 * group, in_block)) : 1.0;
    precise float added = (LOW == 1 ? half_at(scales + kScaleWords, in_block) : scale) * low;
    value = value + added;
  }
  return row_scale * value;
}
