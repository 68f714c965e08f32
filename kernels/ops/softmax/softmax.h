// The inner work of aten.softmax and aten.log_softmax: one contiguous line.
#pragma once

#include <cstdint>
#include <string_view>

namespace mote {

struct SoftmaxFunctions {
  static constexpr std::string_view kRole = "softmax";

  // The largest of x [n]; NaN is passed over; -infinity if there is nothing else.
  float (*maximum)(const float* x, int64_t n);
  // y [n] = e^(x - top); returns their sum. y may be x.
  float (*exponentials)(const float* x, int64_t n, float top, float* y);
  // y [n] = y / divisor
  void (*divide)(float* y, int64_t n, float divisor);
};

}  // namespace mote
