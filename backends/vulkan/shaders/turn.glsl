// Rows turned as docs/ops.md says, "Rotation", or back: signs, then butterflies of neighbours 1, 2, 4 .. apart, then a scale.
// A row whose columns are no power of two has two turns, of its first columns and of its last. To the bit as on the CPU.
// An invocation holds 16 elements at a time, so that four steps of butterflies read and write memory once. The includer has
// LANES invocations, turn_get(k), turn_set(k, value) and turn_wait(), which makes all see what was set.

float signed_at(uint k, float value) { return (bitCount(k & (k >> 1)) & 1) == 1 ? -value : value; }

// `steps` steps of butterflies of columns that are `apart` and more from each other.
#define TURN_STEPS(steps)                                                                        \
  for (uint i = gl_LocalInvocationID.x; i < count >> steps; i += LANES) {                        \
    uint first = i / apart * (apart << steps) + i % apart;                                       \
    precise float v[1 << steps];                                                                 \
    [[unroll]] for (uint j = 0; j < 1 << steps; ++j) {                                           \
      v[j] = turn_get(begin + first + j * apart);                                                \
      if (!is_back && apart == 1) v[j] = signed_at(first + j, v[j]);                             \
    }                                                                                            \
    [[unroll]] for (uint step = 1; step < 1 << steps; step *= 2) {                               \
      [[unroll]] for (uint j = 0; j < 1 << steps; ++j) {                                         \
        if ((j & step) == 0) {                                                                   \
          precise float sum = v[j] + v[j + step], difference = v[j] - v[j + step];               \
          v[j] = sum;                                                                            \
          v[j + step] = difference;                                                              \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    bool is_last = apart << steps == count;                                                      \
    [[unroll]] for (uint j = 0; j < 1 << steps; ++j) {                                           \
      uint k = first + j * apart;                                                                \
      precise float scaled = v[j] * scale;                                                       \
      turn_set(begin + k, !is_last ? v[j] : is_back ? signed_at(k, scaled) : scaled);            \
    }                                                                                            \
  }                                                                                              \
  turn_wait();

// count: columns of a turn, a power of two of at least 16
void turn_part(uint begin, uint count, float scale, bool is_back) {
  uint apart = 1;
  for (; apart * 16 <= count; apart *= 16) { TURN_STEPS(4) }
  if (apart * 8 == count) { TURN_STEPS(3) }
  if (apart * 4 == count) { TURN_STEPS(2) }
  if (apart * 2 == count) { TURN_STEPS(1) }
}

void turn_row(uint begin, uint columns, uint count, float scale, bool is_back) {
  uint last = begin + columns - count, parts = last == begin ? 1 : 2;
  for (uint part = 0; part < parts; ++part) turn_part((part == 1) != is_back ? last : begin, count, scale, is_back);
}
