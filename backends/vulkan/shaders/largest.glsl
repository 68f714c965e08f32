// The order of elements, the largest first: ascending keys, and of equal ones ascending places. NaN counts as -infinity.
uint key_of(uint bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) bits = 0xff800000u;
  if (bits == 0x80000000u) bits = 0;
  return (bits & 0x80000000u) != 0 ? bits : ~(bits | 0x80000000u);
}

uint bits_of(uint key) { return (key & 0x80000000u) != 0 ? key : ~(key | 0x80000000u); }

bool is_before(uvec2 a, uvec2 b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }
