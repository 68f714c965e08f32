// float_product_rounds: see float_product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ROUNDS
#include "float_product.glsl"
