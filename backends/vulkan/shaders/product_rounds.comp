// product_rounds: see product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ROUNDS
#include "product.glsl"
