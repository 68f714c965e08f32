#include "kernels/linear/activations.h"

#include <algorithm>

#include "kernels/math.h"
#include "kernels/rows.h"

namespace mote {

namespace {

// torchao's int8 asymmetric per-token quantisation (docs/ops.md).
struct RowScale {
  float scale;
  float inverse;
  float zero;
};

float clamp_int8(float value) {
  value = value > -128.0f ? value : -128.0f;  // NaN becomes -128
  return value < 127.0f ? value : 127.0f;
}

RowScale row_scale(const float* x, int64_t width) {
  float low = 0, high = 0;
  for (int64_t k = 0; k < width; ++k) low = x[k] < low ? x[k] : low;
  for (int64_t k = 0; k < width; ++k) high = x[k] > high ? x[k] : high;
  RowScale row;
  row.scale = std::max((high - low) / 255.0f, 0x1p-126f);
  row.inverse = 1.0f / row.scale;
  row.zero = clamp_int8(-128.0f - math::round_even(low / row.scale));
  return row;
}

// q - zero, an integer in -255..255.
inline float centered_code(float x, const RowScale& row) {
  // Beyond +-512 the clamp decides anyway, and within it adding 1.5 * 2^23 rounds to even.
  float scaled = x * row.inverse;
  scaled = scaled > -512.0f ? scaled : -512.0f;
  scaled = scaled < 512.0f ? scaled : 512.0f;
  const float rounded = (scaled + 12582912.0f) - 12582912.0f;
  return clamp_int8(rounded + row.zero) - row.zero;
}

void write_codes(const float* x, int64_t width, const RowScale& row, int16_t* codes) {
  constexpr int kOrder[4] = {0, 2, 1, 3};
  for (int64_t k = 0; k < width; k += 4) {
    for (int j = 0; j < 4; ++j) codes[k + j] = static_cast<int16_t>(centered_code(x[k + kOrder[j]], row));
  }
}

}  // namespace

ActivationMode activation_mode(bool int8, const Tensor& weight) {
  if (!int8) return ActivationMode::kFloat;
  return weight.bits == 0 ? ActivationMode::kRounded : ActivationMode::kCodes;
}

size_t activations_bytes(ActivationMode mode, int64_t count, int64_t width) {
  const size_t values = array_bytes<float>(count * width);  // also a strided row on its way to codes
  if (mode != ActivationMode::kCodes) return values;
  return array_bytes<int16_t>(count * width) + array_bytes<float>(count) + values;
}

Activations prepare_activations(ActivationMode mode, const Tensor& x, Scratch& scratch, ThreadPool& threads) {
  Activations result;
  result.count = num_rows(x);
  result.width = row_length(x);
  if (mode == ActivationMode::kFloat && x.is_contiguous()) {
    result.values = x.as<float>();
    return result;
  }
  const int64_t count = result.count, width = result.width;
  int16_t* codes = mode == ActivationMode::kCodes ? scratch.take<int16_t>(count * width) : nullptr;
  float* scales = mode == ActivationMode::kCodes ? scratch.take<float>(count) : nullptr;
  float* values = scratch.take<float>(count * width);
  threads.parallel_for(count, row_grain(4 * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      float* row = values + t * width;
      if (mode == ActivationMode::kFloat) {
        copy_row(x, t, row);
        continue;
      }
      const float* from = read_row(x, t, row);
      const RowScale quantised = row_scale(from, width);
      if (mode == ActivationMode::kCodes) {
        scales[t] = quantised.scale;
        write_codes(from, width, quantised, codes + t * width);
      } else {
        for (int64_t k = 0; k < width; ++k) row[k] = centered_code(from[k], quantised) * quantised.scale;
      }
    }
  });
  result.values = mode == ActivationMode::kCodes ? nullptr : values;
  result.codes = codes;
  result.scales = scales;
  return result;
}

}  // namespace mote
