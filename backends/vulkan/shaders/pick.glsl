// For each element of `index` what lies there along an axis of `x`; negative ones count from its end. Beyond it: NaN.
// push: 4 sizes; x: offset and 4 strides, that of the axis 0; index: the same; size and stride of the axis
void pick_elements(uint group) {
  uint element = 64 * group + gl_LocalInvocationID.x, rest = element, from = push[4], at = push[9];
  if (element >= push[0] * push[1] * push[2] * push[3]) return;
  for (int axis = 3; axis >= 0; --axis) {
    uint i = rest % push[axis];
    rest /= push[axis];
    from += i * push[5 + axis];
    at += i * push[10 + axis];
  }
  int place = int(IN_1(at)), size = int(push[14]);
  if (place < 0) place += size;
  bool is_within = place >= 0 && place < size;
  OUT_2(element, is_within ? IN_0(from + uint(place) * push[15]) : 0x7fc00000u);
}
