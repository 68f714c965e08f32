// float_product_chain: see float_product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define CHAIN
#include "float_product.glsl"
