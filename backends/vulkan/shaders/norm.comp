#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KIND = 0;
layout(constant_id = 1) const bool HAS_WEIGHT = false;
layout(constant_id = 2) const bool HAS_BIAS = false;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Weight { uint weight[]; };
layout(binding = 2) readonly buffer Bias { uint bias[]; };
layout(binding = 3) writeonly buffer Y { uint y[]; };
shared float parts[64];
#define IN_0(index) x[index]
#define IN_1(index) weight[index]
#define IN_2(index) bias[index]
#define OUT_3(index, value) y[index] = value
#include "norm.glsl"

void main() { norm_rows(group_index()); }
