// product_dot: see product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_spirv_intrinsics : require
#define DOT
#include "product.glsl"
