// Rows of any strides that LANES invocations share each; a workgroup of 64 has 64 / LANES rows.
// push: columns, rows, rows of the inner dimension, offset, outer stride, inner stride, stride of columns
#ifndef CHAIN
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint LANES = 64;
#endif

shared float parts[64];

uint own_lane() { return gl_LocalInvocationID.x % LANES; }
uint own_row(uint group) { return group * (64 / LANES) + gl_LocalInvocationID.x / LANES; }
uint begin_of(uint row) { return push[3] + row / push[2] * push[4] + row % push[2] * push[5]; }
