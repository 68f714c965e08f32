// Passes over the scores of a vocabulary: what choosing a token costs. A NaN counts as less than everything.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/kernel.h"

namespace mote {

struct ScanFunctions {
  static constexpr std::string_view kRole = "scan";

  // The largest of x [n]; -infinity if there is none.
  float (*maximum)(const float* x, int64_t n);
  // The lowest index of the largest; 0 if there is none.
  int64_t (*argmax)(const float* x, int64_t n);
  // Writes the indices of all x >= threshold in ascending order and returns their number; `indices` has room for n.
  int64_t (*at_least)(const float* x, int64_t n, float threshold, int32_t* indices);
  // y [n] = e^((x - top) * factor), 0 for NaN; returns their sum in 16 lanes. x <= top, top finite; y nullptr: not
  // written.
  float (*exponentials)(const float* x, int64_t n, float top, float factor, float* y);
};

// Those of the best kernel; the ones for every CPU where MOTE_KERNEL or MOTE_CPU_FEATURES is wrong, which opening a
// model reports. Thread safety: any thread.
const ScanFunctions& scan_functions();

}  // namespace mote
