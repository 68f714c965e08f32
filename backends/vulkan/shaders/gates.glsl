// The functions of gated linears and of elements; GATES in lowering.py.
float sigmoid(float x) { return 1.0 / (1.0 + exp(-x)); }

float tanh_of(float x) {
  float e = exp(-2.0 * abs(x));
  return sign(x) * (abs(x) < 0.01 ? abs(x) * (1.0 - x * x / 3.0) : (1.0 - e) / (1.0 + e));
}

// Abramowitz and Stegun 7.1.26 is too coarse; this is a minimax fraction of erfc by a Chebyshev fit (Numerical Recipes
// 6.2.2), relative error 1.2e-7.
float erf_of(float x) {
  float z = abs(x), t = 1.0 / (1.0 + 0.5 * z);
  float p = 0.17087277;
  p = -0.82215223 + t * p;
  p = 1.48851587 + t * p;
  p = -1.13520398 + t * p;
  p = 0.27886807 + t * p;
  p = -0.18628806 + t * p;
  p = 0.09678418 + t * p;
  p = 0.37409196 + t * p;
  p = 1.00002368 + t * p;
  float complement = t * exp(-z * z - 1.26551223 + t * p);
  return x >= 0.0 ? 1.0 - complement : complement - 1.0;
}

float gelu(float x) { return 0.5 * x * (1.0 + erf_of(x * 0.70710678118654752)); }
float gelu_tanh(float x) { return 0.5 * x * (1.0 + tanh_of(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

float gate_of(uint function, float x) {
  switch (function) {
    case 1: return x * sigmoid(x);
    case 2: return gelu(x);
    case 3: return gelu_tanh(x);
    case 4: return max(x, 0.0);
    case 5: return sigmoid(x);
    case 6: return max(x, 0.0) * max(x, 0.0);
    default: return x;
  }
}

// function: 0: as GPT-OSS, with alpha   limit: 0: there is none
float gated(uint function, float gate, float up, float alpha, float limit) {
  if (limit != 0.0) {
    gate = min(gate, limit);
    up = clamp(up, -limit, limit);
  }
  if (function == 0) return (up + 1.0) * gate * sigmoid(gate * alpha);
  return gate_of(function, gate) * up;
}
