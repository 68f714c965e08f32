// product_staged: see product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define STAGED
#include "product.glsl"
