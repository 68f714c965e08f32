// chain_rounds: see chain.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ROUNDS
#include "chain.glsl"
