// chain: see chain.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "chain.glsl"
