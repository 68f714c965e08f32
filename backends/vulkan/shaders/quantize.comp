// Rows of floats as 8-bit codes: quantize.glsl. Their elements may be gates that let others through.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "gates.glsl"
layout(local_size_x_id = 6) in;
layout(constant_id = 0) const bool IS_GATED = false;
layout(constant_id = 1) const uint FUNCTION = 0;  // gates.glsl

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer NormWeight { float norm_weight[]; };
layout(binding = 2) writeonly buffer Codes { uint new_codes[]; };
layout(binding = 3) writeonly buffer Rows { uint new_rows[]; };
layout(binding = 4) writeonly buffer Sums { uint new_sums[]; };
layout(binding = 5) coherent buffer Turned { float turned[]; };  // rows for which shared memory has no room
layout(binding = 6) readonly buffer Up { float up[]; };

uint begin, begin_of_up;
float source(uint k) {
  if (!IS_GATED) return x[begin + k];
  return gated(FUNCTION, x[begin + k * push[13]], up[begin_of_up + k * push[16]], float_at(17), float_at(18));
}
#define QUANTIZED_AT 8
#include "quantize.glsl"

// push: rows, rows of the inner dimension, offset, outer stride, inner stride, workgroups of a row; from 8 on as quantize.glsl says;
// from 13 on of gates the stride of columns, what they let through: offset, strides of rows and of columns; alpha, limit
void main() {
  uint row = group_index() / push[5];
  if (row >= push[0]) return;
  begin = push[2] + row / push[1] * push[3] + row % push[1] * push[4];
  if (IS_GATED) begin_of_up = push[14] + row * push[15];
  quantize_row(row, group_index() % push[5], push[5]);
}
