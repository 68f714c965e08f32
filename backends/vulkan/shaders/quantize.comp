// Rows of floats as 8-bit codes: quantize.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x_id = 6) in;

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = 2) writeonly buffer Codes { uint new_codes[]; };
layout(binding = 3) writeonly buffer Rows { uint new_rows[]; };
layout(binding = 4) writeonly buffer Sums { uint new_sums[]; };
layout(binding = 5) coherent buffer Turned { float turned[]; };  // rows for which shared memory has no room

uint begin;
float source(uint k) { return x[begin + k]; }
#define QUANTIZED_AT 8
#include "quantize.glsl"

// push: rows, rows of the inner dimension, offset, outer stride, inner stride, workgroups of a row; from 8 on as quantize.glsl says
void main() {
  uint row = group_index() / push[5];
  if (row >= push[0]) return;
  begin = push[2] + row / push[1] * push[3] + row % push[1] * push[4];
  quantize_row(row, group_index() % push[5], push[5]);
}
