// Who looks at the values that a method computes, as it computes them.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/tensor.h"

namespace mote {

// An output of an instruction, of a view too. Valid during the call: later instructions may use its memory anew.
struct ComputedValue {
  uint32_t method = 0;  // of the bound program
  uint32_t instruction = 0;
  uint32_t output = 0;
  const Tensor* tensor = nullptr;  // contiguous; what is written to it takes the place of the value, but for a view's
};

// Called after each instruction, by the thread that runs the method. false: the call ends with kCancelled.
using ValueSink = std::function<bool(const ComputedValue&)>;

}  // namespace mote
