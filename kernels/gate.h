// Activation functions that fused ops apply.
#pragma once

#include <string_view>

#include "kernels/math.h"

namespace mote {

enum class Gate : int { kSilu = 0, kGelu, kGeluTanh, kRelu, kSigmoid, kIdentity, kReluSquared };

inline constexpr std::string_view kGateNames[] = {"silu",    "gelu",     "gelu_tanh",   "relu",
                                                  "sigmoid", "identity", "relu_squared"};

inline float apply(Gate gate, float x) {
  switch (gate) {
    case Gate::kSilu: return math::silu(x);
    case Gate::kGelu: return math::gelu(x);
    case Gate::kGeluTanh: return math::gelu_tanh(x);
    case Gate::kRelu: return x < 0 ? 0.0f : x;
    case Gate::kSigmoid: return math::sigmoid(x);
    case Gate::kIdentity: return x;
    case Gate::kReluSquared: return x < 0 ? 0.0f : x * x;
  }
  return x;
}

}  // namespace mote
