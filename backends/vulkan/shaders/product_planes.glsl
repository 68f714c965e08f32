// The products of the digits of a weight with codes, plane by plane. The includer says where both are: weight_at(index), which
// is 4 rows of a word, and codes_at(token, octet), and of how many COLUMNS a plane is.
// at: in quads of words   first: octet of columns
void add_plane(uint plane, uint at, uint first, uint shift) {
  if (plane == 8) {
    for (uint pair = 0; pair < COLUMNS / 8; ++pair) {
      uvec4 low = weight_at(at + 8 * pair), high = weight_at(at + 8 * pair + 4);
      EACH_TOKEN {
        OCTET q = codes_at(t, first + pair);
        totals[t] += ivec4(products_of_bytes(low, FIRST_QUAD(q)));
        totals[t] += ivec4(products_of_bytes(high, SECOND_QUAD(q)));
      }
    }
    return;
  }
  for (uint word = 0; word < COLUMNS * plane / 32; ++word) {
    uvec4 digits = weight_at(at + 4 * word);
    EACH_TOKEN {
      uvec4 sum = uvec4(0);
      [[unroll]] for (uint h = 0; h < 8 / plane; h += 2) {
        OCTET q = codes_at(t, first + (word * (8 / plane) + h) / 2);
        sum += parts_of_products(digits, plane * h, plane, FIRST_QUAD(q)) +
               parts_of_products(digits, plane * (h + 1), plane, SECOND_QUAD(q));
      }
      totals[t] += ivec4(sum_of_parts(sum) << shift);
    }
  }
}

void add_planes(uint at, uint first) {
  add_plane(kPlane0, at, first, 0);
  if (kPlane1 != 0) add_plane(max(kPlane1, 1), at + 4 * COLUMNS * kPlane0 / 32, first, kPlane0);
  if (kPlane2 != 0) add_plane(max(kPlane2, 1), at + 4 * COLUMNS * (kPlane0 + kPlane1) / 32, first, kPlane0 + kPlane1);
}
