// Passes over the scores of a vocabulary, which are what choosing a token costs. A NaN counts as less than any number.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/kernel.h"

namespace mote {

struct ScanFunctions {
  static constexpr std::string_view kRole = "scan";

  // The largest of x [n]; -infinity if there is no number.
  float (*maximum)(const float* x, int64_t n);
  // The lowest index of the largest; 0 if there is no number.
  int64_t (*argmax)(const float* x, int64_t n);
  // Writes the indices of all x >= threshold in ascending order and returns their number; `indices` has room for n.
  int64_t (*at_least)(const float* x, int64_t n, float threshold, int32_t* indices);
  // y [n] = e^((x - top) * factor), 0 for NaN. Returns their sum: y[k] is added in lane k % 16, then sum_lanes.
  // x <= top, top is finite. y may be nullptr: then only the sum is computed.
  float (*exponentials)(const float* x, int64_t n, float top, float factor, float* y);
};

// The functions of the best kernel, or the portable ones if MOTE_KERNEL or MOTE_CPU_FEATURES is invalid, which opening
// a model reports. Thread safety: any thread.
const ScanFunctions& scan_functions();

}  // namespace mote
