// Which rows go to which expert.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/scratch.h"
#include "kernels/tensor.h"

namespace mote {

// The N x K choices sorted by expert, by token within one. Arrays lie in scratch memory.
struct Routing {
  int32_t* tokens = nullptr;     // [choices] token of the i-th sorted choice
  int32_t* places = nullptr;     // [N, K] place of a choice among the sorted ones
  int32_t* offsets = nullptr;    // [experts + 1] first sorted choice of an expert
  int32_t* active = nullptr;     // [num_active] experts that were chosen
  int64_t num_active = 0;

  int64_t first(int64_t expert) const { return offsets[expert]; }
  int64_t count(int64_t expert) const { return offsets[expert + 1] - offsets[expert]; }
};

size_t routing_bytes(int64_t choices, int64_t experts);

// indices: int64 [N, K] of any strides. Errors: kInvalidArgument for an index outside [0, experts).
Status route(const Tensor& indices, int64_t experts, Scratch& scratch, Routing& routing);

}  // namespace mote
