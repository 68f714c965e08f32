#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint AXIS = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Index { uint indices[]; };
layout(binding = 2) readonly buffer From { uint from[]; };
layout(binding = 3) writeonly buffer Y { uint y[]; };
#define IN_0(index) x[index]
#define IN_1(index) indices[index]
#define IN_2(index) from[index]
#define OUT_3(index, value) y[index] = value
#include "scatter.glsl"

void main() { scatter_elements(group_index()); }
