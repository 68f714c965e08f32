// Splits of an attention drawn together one after the other: the same whoever does it. ITEMS is the includer's.
#include "gates.glsl"

struct Total {
  float largest[ITEMS], sums[ITEMS];
  vec2 outputs[ITEMS];
};

void begin(out Total total) {
  for (uint i = 0; i < ITEMS; ++i) {
    total.largest[i] = -kInfinity;
    total.sums[i] = 0.0;
    total.outputs[i] = vec2(0.0);
  }
}

void add_split(inout Total total, uint i, float largest, float sum, vec2 outputs) {
  if (largest == -kInfinity) return;
  float most = max(total.largest[i], largest);
  precise float before = total.largest[i] == -kInfinity ? 0.0 : exp(total.largest[i] - most), now = exp(largest - most);
  precise float sums = total.sums[i] * before + sum * now;
  precise vec2 all = total.outputs[i] * before + outputs * now;
  total.largest[i] = most;
  total.sums[i] = sums;
  total.outputs[i] = all;
}

vec2 finish(in Total total, uint i, bool has_sink, float sink) {
  precise float sum = total.sums[i];
  vec2 outputs = total.outputs[i];
  if (has_sink) {
    float most = max(total.largest[i], sink);
    float factor = exp(total.largest[i] - most);
    sum = sum * factor + exp(sink - most);
    outputs *= factor;
  }
  return outputs / sum;
}
