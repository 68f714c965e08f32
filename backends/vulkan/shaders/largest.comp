// The largest elements of each row, of what firsts.comp made of it: they lie in the blocks whose own firsts are the first,
// as many as are wanted.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "largest.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Firsts { uvec2 firsts[]; };
layout(binding = 2) writeonly buffer Largest { uvec2 largest[]; };  // bits, place

const uint kMost = 65;

shared uvec2 found[64];
shared uint blocks[kMost];

// The first of what the lanes have.
uvec2 first_of_all(uvec2 own) {
  uint lane = gl_LocalInvocationID.x;
  barrier();
  found[lane] = own;
  barrier();
  for (uint half_lanes = 32; half_lanes > 0; half_lanes /= 2) {
    if (lane < half_lanes && is_before(found[lane + half_lanes], found[lane])) found[lane] = found[lane + half_lanes];
    barrier();
  }
  return found[0];
}

uvec2 element(uint row, uint block, uint index) {
  uint k = block / 64 * 4096 + block % 64 + index * 64;
  return k < push[0] ? uvec2(key_of(x[row * push[0] + k]), k) : uvec2(0xffffffffu);
}

// push: columns, workgroups of a row in firsts.comp, count
void main() {
  uint row = gl_WorkGroupID.x, lane = gl_LocalInvocationID.x, count = min(push[2], kMost), all = push[1] * 64;
  uvec2 latest = uvec2(0);
  for (uint n = 0; n < count; ++n) {
    uvec2 first = uvec2(0xffffffffu);
    for (uint k = lane; k < all; k += 64) {
      uvec2 each = firsts[row * all + k];
      if ((n == 0 || is_before(latest, each)) && is_before(each, first)) first = each;
    }
    latest = first_of_all(first);
    uint place = min(latest.y, push[0] - 1);
    if (lane == 0) blocks[n] = place / 4096 * 64 + place % 64;
    if (count == 1 && lane == 0) largest[row] = uvec2(bits_of(latest.x), place);
  }
  if (count == 1) return;
  barrier();
  for (uint n = 0; n < count; ++n) {
    uvec2 first = uvec2(0xffffffffu);
    for (uint k = lane; k < count * 64; k += 64) {
      uvec2 each = element(row, blocks[k / 64], lane);
      if ((n == 0 || is_before(latest, each)) && is_before(each, first)) first = each;
    }
    latest = first_of_all(first);
    if (lane == 0) largest[row * count + n] = uvec2(bits_of(latest.x), latest.y);
  }
}
