// A row of a head behind its norm and turned, as norm.comp and rope.comp do it. The includer has LANES, WIDTH of the widest row, LAYOUT,
// cosines and sines; TURNED_AT and TABLES_AT, where push has columns that are turned, and of cos and sin an offset and a stride each.
shared float row[WIDTH];
shared float lanes[64];

// Of the elements from `begin` on.
float factor_of_norm(uint begin, uint width, float eps) {
  for (uint l = gl_LocalInvocationID.x; l < 64; l += LANES) {
    precise float sum = 0.0;
    for (uint k = l; k < width; k += 64) sum = fma(row[begin + k], row[begin + k], sum);
    lanes[l] = sum;
  }
  barrier();
  precise float all;
  SUM_64_LANES(all, lanes)
  precise float root = sqrt(all / float(width) + eps);
  precise float factor = 1.0 / root;
  return factor;
}

float turned_at(uint i, uint token) {
  precise float value = row[i];
  uint turned = push[TURNED_AT];
  if (LAYOUT == 3 || i >= turned) return value;
  bool is_first = LAYOUT == 2 ? i % 2 == 0 : i < turned / 2;
  uint other = LAYOUT == 2 ? i ^ 1u : is_first ? i + turned / 2 : i - turned / 2;
  bool is_negative = LAYOUT == 1 ? !is_first : is_first;
  precise float a = value * cosines[push[TABLES_AT] + token * push[TABLES_AT + 1] + i];
  precise float b = row[other] * sines[push[TABLES_AT + 2] + token * push[TABLES_AT + 3] + i];
  value = is_negative ? a - b : a + b;
  return value;
}
