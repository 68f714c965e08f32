// What the instruction sets implement of mote.rope.
#pragma once

#include <cstdint>
#include <string_view>

namespace mote {

enum class RopeLayout : int { kHalf = 0, kHalfFlipped, kInterleaved };

struct RopeKernel {
  static constexpr std::string_view kRole = "rope";

  // y[0..turned) = x turned by the angles of cos and sin [turned]; y may be x. `turned` is even.
  void (*rotate)(RopeLayout layout, const float* x, const float* cos, const float* sin, int64_t turned, float* y);
};

}  // namespace mote
