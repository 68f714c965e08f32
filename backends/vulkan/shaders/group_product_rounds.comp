// group_product_rounds: see group_product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ROUNDS
#include "group_product.glsl"
