// The first of each row's elements in descending or ascending order, with their places; of equal ones the first comes first.
// Each is the first of those behind the one before it, so that nothing is marked or moved.
// ORDER: 0: descending, 1: ascending, NaN as the largest; 2: ascending, NaN first
shared uvec2 firsts[64];  // key, index; no element: both at their most

// Ascending as elements are to come.
uint key_of(uint bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return ORDER == 1 ? 0xfffffffeu : 0;
  if (bits == 0x80000000u) bits = 0;
  uint ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ORDER == 0 ? ~ascending : ascending;
}

bool is_before(uvec2 a, uvec2 b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }

// push[7]: count
void top_rows(uint group) {
  uint lane = own_lane(), row = own_row(group), own = gl_LocalInvocationID.x, columns = row < push[1] ? push[0] : 0;
  uint begin = begin_of(row);
  uvec2 latest = uvec2(0);
  for (uint n = 0; n < push[7]; ++n) {
    uvec2 first = uvec2(0xffffffffu);
    for (uint k = lane; k < columns; k += LANES) {
      uvec2 each = uvec2(key_of(IN_0(begin + k * push[6])), k);
      if ((n == 0 || is_before(latest, each)) && is_before(each, first)) first = each;
    }
    barrier();
    firsts[own] = first;
    barrier();
    for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
      if (lane < half_lanes && is_before(firsts[own + half_lanes], firsts[own])) firsts[own] = firsts[own + half_lanes];
      barrier();
    }
    latest = firsts[own - lane];
    if (lane == 0 && columns > 0) {
      OUT_1(row * push[7] + n, IN_0(begin + min(latest.y, columns - 1) * push[6]));
      OUT_2(row * push[7] + n, min(latest.y, columns - 1));
    }
  }
}
