// The inner work of mote.rms_norm and mote.layer_norm: one row.
#pragma once

#include <cstdint>
#include <string_view>

namespace mote {

struct NormFunctions {
  static constexpr std::string_view kRole = "norm";

  // y [width] = x / sqrt(mean(x^2) + eps) * (weight + offset); weight nullptr: not multiplied. y may be x.
  void (*rms_norm)(const float* x, const float* weight, float offset, float eps, int64_t width, float* y);
  // y [width] = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias; nullptr: left out. y may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int64_t width, float* y);
};

}  // namespace mote
