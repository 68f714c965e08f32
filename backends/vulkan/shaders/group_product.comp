// group_product: see group_product.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "group_product.glsl"
