#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
layout(constant_id = 1) const uint FUNCTION = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };
#define IN_0(index) x[index]
#define OUT_1(index, value) y[index] = value
#include "reduce.glsl"

void main() { reduce_rows(group_index()); }
