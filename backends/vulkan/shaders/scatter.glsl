// `x` with the elements of `from` in the places of `index` along an axis; of those that go to one place the last stays.
// push: 4 sizes; x: offset and 4 strides; 4 sizes of the index; index: offset and 4 strides; from: the same
void scatter_elements(uint group) {
  uint element = 64 * group + gl_LocalInvocationID.x, rest = element;
  if (element >= push[0] * push[1] * push[2] * push[3]) return;
  uint own = push[4], at = push[13], source = push[18], place = 0;
  bool is_reached = true;
  for (int axis = 3; axis >= 0; --axis) {
    uint i = rest % push[axis];
    rest /= push[axis];
    own += i * push[5 + axis];
    if (axis == AXIS) {
      place = i;
      continue;
    }
    is_reached = is_reached && i < push[9 + axis];
    at += i * push[14 + axis];
    source += i * push[19 + axis];
  }
  uint value = IN_0(own);
  for (uint j = 0; is_reached && j < push[9 + AXIS]; ++j) {
    if (IN_1(at + j * push[14 + AXIS]) == place) value = IN_2(source + j * push[19 + AXIS]);
  }
  OUT_3(element, value);
}
