// Activation functions that fused ops apply.
#pragma once

#include <string_view>

namespace mote {

enum class GateFunction : int { kSilu = 0, kGelu, kGeluTanh, kRelu, kSigmoid, kIdentity, kReluSquared };

inline constexpr std::string_view kGateNames[] = {"silu",    "gelu",     "gelu_tanh",   "relu",
                                                  "sigmoid", "identity", "relu_squared"};

}  // namespace mote
