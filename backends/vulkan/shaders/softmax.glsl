// Splits of an attention drawn together one after the other: the same whoever does it.

// Of what there is and of one more split: the largest score, the sum, and what outputs of both are scaled by.
void merge(inout float all_largest, inout float all_sum, float largest, float sum, out float before, out float now) {
  before = 1.0;
  now = 0.0;
  if (largest == -kInfinity) return;
  float most = max(all_largest, largest);
  precise float scale = all_largest == -kInfinity ? 0.0 : exp(all_largest - most), own_scale = exp(largest - most);
  precise float sums = all_sum * scale + sum * own_scale;
  before = scale;
  now = own_scale;
  all_largest = most;
  all_sum = sums;
}

vec2 merged_outputs(vec2 all, vec2 outputs, float largest, float before, float now) {
  precise vec2 merged = all * before + outputs * now;
  return largest == -kInfinity ? all : merged;
}

// sink: of minus infinity there is none   Of what sees nothing: 0.
vec2 finished(float largest, float all_sum, vec2 outputs, float sink) {
  precise float sum = all_sum;
  if (sink != -kInfinity) {
    float most = max(largest, sink);
    precise float factor = exp(largest - most);
    sum = sum * factor + exp(sink - most);
    outputs *= factor;
  }
  return sum == 0.0 ? vec2(0.0) : outputs / sum;
}

// The logarithm of what the softmax divides by; minus infinity of what sees nothing.
float log_of_sum(float largest, float all_sum, float sink) {
  float most = max(largest, sink);
  if (most == -kInfinity) return most;
  precise float sum = largest == -kInfinity ? 0.0 : all_sum * exp(largest - most);
  if (sink != -kInfinity) sum = sum + exp(sink - most);
  return most + log(sum);
}
