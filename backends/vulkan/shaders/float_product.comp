// float_product: see float_product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "float_product.glsl"
