#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "gates.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FUNCTION = 0;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) readonly buffer C { uint c[]; };
layout(binding = 3) writeonly buffer Y { uint y[]; };
#define IN_0(index) a[index]
#define IN_1(index) b[index]
#define IN_2(index) c[index]
#define OUT_3(index, value) y[index] = value
#include "map.glsl"

void main() { map_elements(group_index()); }
