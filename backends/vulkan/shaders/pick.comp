#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Index { uint indices[]; };
layout(binding = 2) writeonly buffer Y { uint y[]; };
#define IN_0(index) x[index]
#define IN_1(index) indices[index]
#define OUT_2(index, value) y[index] = value
#include "pick.glsl"

void main() { pick_elements(group_index()); }
