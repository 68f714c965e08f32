// A function of each element; FUNCTIONS in maps.py. Elements are words: floats, integers, or 0 and 1 for conditions.
const uint kFirstBinary = 37, kWhere = 77, kFirstFill = 78, kSoftcap = 80;

#define F(value) floatBitsToUint(value)

// Near 0 by their series, where the difference of neighbours of 1 has no digits left.
float expm1_of(float x) {
  float p = 1.0 + x / 6.0 * (1.0 + x / 7.0);
  p = 1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * p)));
  return abs(x) < 0.35 ? x * p : exp(x) - 1.0;
}
float log1p_of(float x) {
  float s = x / (2.0 + x), q = s * s;
  return abs(x) < 0.25 ? 2.0 * s * (1.0 + q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q / 9.0)))) : log(1.0 + x);
}
float erf_near(float x) {
  float q = x * x;
  float series = 1.0 - q * (1.0 / 3.0 - q * (0.1 - q * (1.0 / 42.0 - q * (1.0 / 216.0 - q / 1320.0))));
  return abs(x) < 0.5 ? 1.1283791670955126 * x * series : erf_of(x);
}
float power_of(float x, float z) {
  if (z == 0.0) return 1.0;
  if (z == 1.0) return x;
  if (z == 2.0) return x * x;
  if (z == 0.5) return sqrt(x);
  if (x == 0.0) return z > 0.0 ? 0.0 : kInfinity;
  float magnitude = exp2(z * log2(abs(x)));
  if (x > 0.0) return magnitude;
  if (floor(z) != z) return uintBitsToFloat(0x7fc00000u);
  return floor(z / 2.0) * 2.0 == z ? magnitude : -magnitude;
}
int floor_divided(int i, int j) {
  if (j == 0) return 0;
  if (j == -1) return -i;
  int quotient = i / j;
  return quotient * j != i && (i < 0) != (j < 0) ? quotient - 1 : quotient;
}
uint function_of(uint wx, uint wz, uint wc) {
  float x = uintBitsToFloat(wx), z = uintBitsToFloat(wz);
  int i = int(wx), j = int(wz);
  switch (FUNCTION) {
    case 1: return F(-x);
    case 2: return F(abs(x));
    case 3: return F(exp(x));
    case 4: return F(log(x));
    case 5: return F(sqrt(x));
    case 6: return F(1.0 / sqrt(x));
    case 7: return F(1.0 / x);
    case 8: return F(sin(x));
    case 9: return F(cos(x));
    case 10: return F(tanh_of(x));
    case 11: return F(sigmoid(x));
    case 12: return F(x * sigmoid(x));
    case 13: return F(max(x, 0.0));
    case 14: return F(floor(x));
    case 15: return F(ceil(x));
    case 16: return F(roundEven(x));
    case 17: return F(sign(x));
    case 18: return F(x * x);
    case 19: return F(gelu(x));
    case 20: return F(gelu_tanh(x));
    case 21: return F(x > 20.0 ? x : log1p_of(exp(x)));
    case 22: return F(expm1_of(x));
    case 23: return F(log1p_of(x));
    case 24: return F(log2(x));
    case 25: return F(erf_near(x));
    case 26: return F(min(max(x, float_at(24)), float_at(25)));
    case 27: return F(x > 0.0 ? x : x * float_at(24));
    case 28: return F(x > 0.0 ? x : float_at(24) * expm1_of(x));
    case 29: return uint(is_nan(x));
    case 30: return uint(-i);
    case 31: return uint(abs(i));
    case 32: return 1 - wx;
    case 33: return F(float(i));
    case 34: return uint(int(clamp(x, -2147483648.0, 2147483520.0)));
    case 35: return uint(x != 0.0);
    case 36: return uint(i != 0);
    case 37: return F(x + z);
    case 38: return F(x - z);
    case 39: return F(x * z);
    case 40: return F(x / z);
    case 41: return F(max(x, z));
    case 42: return F(min(x, z));
    case 43: return F(power_of(x, z));
    case 44: return F(x - z * floor(x / z));
    case 45: return F(x - z * trunc(x / z));
    case 46: return F(floor(x / z));
    case 47: return uint(x == z);
    case 48: return uint(x != z);
    case 49: return uint(x < z);
    case 50: return uint(x <= z);
    case 51: return uint(x > z);
    case 52: return uint(x >= z);
    case 53: return uint(i + j);
    case 54: return uint(i - j);
    case 55: return uint(i * j);
    case 56: return uint(max(i, j));
    case 57: return uint(min(i, j));
    case 58: return uint(j == 0 ? 0 : i - j * floor_divided(i, j));
    case 59: return uint(floor_divided(i, j));
    case 60: return uint(i == j);
    case 61: return uint(i != j);
    case 62: return uint(i < j);
    case 63: return uint(i <= j);
    case 64: return uint(i > j);
    case 65: return uint(i >= j);
    case 66: return wx & wz;
    case 67: return wx | wz;
    case 68: return wx ^ wz;
    case 69: return F(gated(1, x, z, float_at(24), float_at(25)));
    case 70: return F(gated(2, x, z, float_at(24), float_at(25)));
    case 71: return F(gated(3, x, z, float_at(24), float_at(25)));
    case 72: return F(gated(4, x, z, float_at(24), float_at(25)));
    case 73: return F(gated(5, x, z, float_at(24), float_at(25)));
    case 74: return F(gated(6, x, z, float_at(24), float_at(25)));
    case 75: return F(gated(7, x, z, float_at(24), float_at(25)));
    case 76: return F(gated(0, x, z, float_at(24), float_at(25)));
    case 77: return wx != 0 ? wz : wc;
    case 78: return push[24];
    case 79: return uint(int(float_at(24)));
    case 80: return F(tanh_of(x / float_at(24)) * float_at(24));
    default: return wx;
  }
}

// push: 4 sizes, then for y, a, b and c an offset and 4 strides; two numbers
void map_elements(uint group) {
  uint index = 64 * group + gl_LocalInvocationID.x;
  if (index >= push[0] * push[1] * push[2] * push[3]) return;
  uint at[4] = {push[4], push[9], push[14], push[19]};
  for (int axis = 3; axis >= 0; --axis) {
    uint i = index % push[axis];
    index /= push[axis];
    for (uint operand = 0; operand < 4; ++operand) at[operand] += i * push[5 + 5 * operand + axis];
  }
  uint x = FUNCTION < kFirstFill || FUNCTION == kSoftcap ? IN_0(at[1]) : 0;
  uint z = FUNCTION >= kFirstBinary && FUNCTION < kFirstFill ? IN_1(at[2]) : 0;
  OUT_3(at[0], function_of(x, z, FUNCTION == kWhere ? IN_2(at[3]) : 0));
}
