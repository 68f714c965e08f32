// Cosines and sines of position * frequency. A driver's own are right near 0 only: the angle is taken between -pi/4 and pi/4
// by parts of pi/2 of 8 bits (Cody and Waite), whose products are exact without a fused fma, which no device needs to have;
// then by the polynomials of Cephes' sinf and cosf.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool IS_INTERLEAVED = false;
layout(binding = 0) readonly buffer Positions { uint positions[]; };
layout(binding = 1) readonly buffer Frequencies { float frequencies[]; };
layout(binding = 2) writeonly buffer Cos { float cosines[]; };
layout(binding = 3) writeonly buffer Sin { float sines[]; };

// push: tokens, frequencies, scale
void main() {
  uint index = 64 * group_index() + gl_LocalInvocationID.x, pairs = push[1];
  if (index >= push[0] * pairs) return;
  uint token = index / pairs, i = index % pairs;
  precise float angle = float(int(positions[token])) * frequencies[i];
  precise float turns = roundEven(angle * 0.636619772367581343);
  precise float rest = angle - turns * 1.5703125;
  rest = rest - turns * 0.0004825592041015625;
  rest = rest - turns * 1.2665987014770508e-06;
  rest = rest - turns * 9.92093629470503e-10;
  float square = rest * rest;
  float s = rest + rest * square * (-1.6666654611e-1 + square * (8.3321608736e-3 - square * 1.9515295891e-4));
  float c = 1.0 - 0.5 * square + square * square * (4.166664568298827e-2 + square * (-1.388731625493765e-3 + square * 2.443315711809948e-5));
  uint quadrant = uint(int(turns)) & 3u;
  float sine = (quadrant & 1u) == 0u ? s : c, cosine = (quadrant & 1u) == 0u ? c : s;
  if ((quadrant & 2u) != 0u) sine = -sine;
  if (quadrant == 1u || quadrant == 2u) cosine = -cosine;
  uint row = 2 * pairs * token;
  uint a = row + (IS_INTERLEAVED ? 2 * i : i), b = row + (IS_INTERLEAVED ? 2 * i + 1 : pairs + i);
  cosines[a] = cosines[b] = cosine * float_at(2);
  sines[a] = sines[b] = sine * float_at(2);
}
