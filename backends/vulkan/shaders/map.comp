// A function of each element; FUNCTIONS in maps.py.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "gates.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FUNCTION = 0;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

float function_of(float x, float z) {
  switch (FUNCTION) {
    case 1: return -x;
    case 2: return abs(x);
    case 3: return exp(x);
    case 4: return log(x);
    case 5: return sqrt(x);
    case 6: return 1.0 / sqrt(x);
    case 7: return 1.0 / x;
    case 8: return sin(x);
    case 9: return cos(x);
    case 10: return tanh_of(x);
    case 11: return sigmoid(x);
    case 12: return x * sigmoid(x);
    case 13: return max(x, 0.0);
    case 14: return floor(x);
    case 15: return ceil(x);
    case 16: return roundEven(x);
    case 17: return sign(x);
    case 18: return x * x;
    case 19: return gelu(x);
    case 20: return gelu_tanh(x);
    case 21: return x > 20.0 ? x : log(1.0 + exp(x));
    case 22: return x + z;
    case 23: return x - z;
    case 24: return x * z;
    case 25: return x / z;
    case 26: return max(x, z);
    case 27: return min(x, z);
    default: return x;
  }
}

// push: 4 sizes, then for y, a and b an offset and 4 strides
void main() {
  uint index = 64 * group_index() + gl_LocalInvocationID.x;
  if (index >= push[0] * push[1] * push[2] * push[3]) return;
  uint at[3] = {push[4], push[9], push[14]};
  for (int axis = 3; axis >= 0; --axis) {
    uint i = index % push[axis];
    index /= push[axis];
    for (uint operand = 0; operand < 3; ++operand) at[operand] += i * push[5 + 5 * operand + axis];
  }
  y[at[0]] = function_of(a[at[1]], FUNCTION >= 22 && FUNCTION <= 27 ? b[at[2]] : 0.0);
}
