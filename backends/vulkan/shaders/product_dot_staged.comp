// product_dot_staged: see product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_spirv_intrinsics : require
#define DOT
#define STAGED
#include "product.glsl"
