// group_product_dot_rounds: see group_product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_spirv_intrinsics : require
#define DOT
#define ROUNDS
#include "group_product.glsl"
