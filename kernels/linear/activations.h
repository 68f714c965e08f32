// Rows of activations as a matrix product reads them.
#pragma once

#include <cstdint>

#include "kernels/scratch.h"
#include "kernels/tensor.h"
#include "kernels/thread_pool.h"

namespace mote {

// What a product does with its activations.
enum class ActivationMode : uint8_t {
  kFloat,      // as they are
  kCodes,      // int8 codes against a quantised weight
  kRounded,    // rounded to int8 and back: a dense weight has no codes to multiply
};

ActivationMode activation_mode(bool int8, const Tensor& weight);

// Rows [count, width]. kCodes: `codes` holds q - zero, each four columns in the order 0 2 1 3 that weight tiles unpack to,
// and `scales` one factor a row. Otherwise `values`.
struct Activations {
  int64_t count = 0;
  int64_t width = 0;
  const float* values = nullptr;
  const int16_t* codes = nullptr;
  const float* scales = nullptr;
};

// Scratch that `prepare_activations` takes for `count` rows.
size_t activations_bytes(ActivationMode mode, int64_t count, int64_t width);

// Rows of x, which may have any strides. A contiguous x in kFloat is used where it lies.
Activations prepare_activations(ActivationMode mode, const Tensor& x, Scratch& scratch, ThreadPool& threads);

}  // namespace mote
