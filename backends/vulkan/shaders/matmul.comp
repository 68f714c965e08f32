#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) writeonly buffer Y { uint y[]; };
#define IN_0(index) a[index]
#define IN_1(index) b[index]
#define OUT_2(index, value) y[index] = value
#include "matmul.glsl"

void main() { matmul_elements(group_index()); }
