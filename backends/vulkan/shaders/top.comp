#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
layout(constant_id = 1) const uint ORDER = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Values { uint values[]; };
layout(binding = 2) writeonly buffer Indices { uint indices[]; };
#define IN_0(index) x[index]
#define OUT_1(index, value) values[index] = value
#define OUT_2(index, value) indices[index] = value
#include "top.glsl"

void main() { top_rows(group_index()); }
