// Rows of activations: normalised, quantised, and finished after a product.
#include "kernels/kernel.h"
#include "kernels/ops/linear/kernels.h"
#include "kernels/simd/hadamard.h"
#include "kernels/simd/math.h"
#include "kernels/simd/rms_norm.h"
#include "kernels/support/gate_function.h"
#include "kernels/support/math.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// torchao's int8 asymmetric per-token quantisation, or one scale and no zero point (docs/ops.md).
struct RowScale {
  float scale;
  float inverse;
  float zero;
};

MOTE_INLINE float clamp_int8(float value) {
  value = value > -128.0f ? value : -128.0f;  // NaN becomes -128
  return value < 127.0f ? value : 127.0f;
}

MOTE_INLINE float round_even(float x) {
  const float shifted = x < 0 ? (x - 8388608.0f) + 8388608.0f : (x + 8388608.0f) - 8388608.0f;
  return x > -8388608.0f && x < 8388608.0f ? shifted : x;
}

MOTE_INLINE float lane_extreme(F32x16 lanes, bool highest) {
  float l[16];
  store_f32(l, lanes);
  float found = 0;
  for (const float value : l) found = (highest ? value > found : value < found) ? value : found;
  return found;
}

RowScale row_scale(const float* x, int64_t width, bool symmetric) {
  F32x16 low[2] = {splat(0.0f), splat(0.0f)}, high[2] = {splat(0.0f), splat(0.0f)};
  const auto join = [&](int side, F32x16 v) MOTE_INLINE_LAMBDA {
    low[side] = min(v, low[side]);
    high[side] = max(v, high[side]);
  };
  int64_t k = 0;
  for (; k + 32 <= width; k += 32) {
    join(0, load_f32(x + k));
    join(1, load_f32(x + k + 16));
  }
  for (; k < width; k += 16) join(0, load_upto(x + k, width - k));
  const float least = lane_extreme(min(low[0], low[1]), false), most = lane_extreme(max(high[0], high[1]), true);
  RowScale row;
  if (symmetric) {
    const float magnitude = most > -least ? most : -least, scale = magnitude / 127.0f;
    row.scale = scale >= 0x1p-126f ? scale : 0.0f;
    row.inverse = scale >= 0x1p-126f ? 1.0f / scale : 0.0f;
    row.zero = 0.0f;
    return row;
  }
  const float step = (most - least) / 255.0f;
  row.scale = step < 0x1p-126f ? 0x1p-126f : step;
  row.inverse = 1.0f / row.scale;
  row.zero = clamp_int8(-128.0f - round_even(least / row.scale));
  return row;
}

// The int8 code of x, as a float.
MOTE_INLINE F32x16 code_of(F32x16 x, const RowScale& row) {
  // Beyond +-512 the clamp decides anyway, and within it adding 1.5 * 2^23 rounds to even. NaN becomes -512.
  const F32x16 scaled = min(max(x * splat(row.inverse), splat(-512.0f)), splat(512.0f));
  const F32x16 rounded = (scaled + splat(12582912.0f)) - splat(12582912.0f);
  return min(max(rounded + splat(row.zero), splat(-128.0f)), splat(127.0f));
}

void rms_norm(const float* x, int64_t width, float eps, const float* weight, float offset, float* y) {
  rms_norm_row(x, width, eps, weight, offset, y);
}

void rotate(const float* x, int64_t width, float* y) { rotate_row(x, width, y); }
void rotate_back(float* x, int64_t width) { rotate_row_back(x, width); }

RowCodes quantize(const float* x, int64_t width, bool symmetric, int64_t group_size, int code_offset, int count,
                  CodeLayout layout, int8_t* codes, int32_t* offsets) {
  constexpr int64_t kChunk = columns_together(CodeLayout::kChunks);
  const RowScale row = row_scale(x, width, symmetric);
  I32x16 all = splat_i32(0);
  for (int64_t group = 0; group < width / group_size; ++group) {
    I32x16 sums = splat_i32(0);
    for (int64_t k = group * group_size; k < (group + 1) * group_size; k += 16) {
      const I32x16 q = round_to_i32(code_of(load_f32(x + k), row));
      sums = sums + q;
      if (count == 1 || layout == CodeLayout::kChunks) {
        store_i8(codes + k / kChunk * kChunk * count + k % kChunk, q);
        continue;
      }
      int8_t bytes[16];
      store_i8(bytes, q);
      for (int i = 0; i < 4; ++i) std::memcpy(codes + count * (k + 4 * i), bytes + 4 * i, 4);
    }
    offsets[count * group] = -code_offset * sum_lanes(sums);
    all = all + sums;
  }
  const auto zero = static_cast<int32_t>(row.zero);
  const int32_t sum = sum_lanes(all);
  if (layout != CodeLayout::kUnsignedQuads) return {row.scale, zero, sum};
  for (int64_t k = 0; k < width; k += 4) {
    uint32_t quad;
    std::memcpy(&quad, codes + count * k, sizeof(quad));
    quad ^= 0x80808080u;  // adds kUnsignedZero to each byte
    std::memcpy(codes + count * k, &quad, sizeof(quad));
  }
  return {row.scale, zero + kUnsignedZero, sum + static_cast<int32_t>(width) * kUnsignedZero};
}

void round(const float* x, int64_t width, bool symmetric, float* to) {
  const RowScale row = row_scale(x, width, symmetric);
  const F32x16 zero = splat(row.zero), scale = splat(row.scale);
  int64_t k = 0;
  for (; k + 16 <= width; k += 16) store_f32(to + k, (code_of(load_f32(x + k), row) - zero) * scale);
  if (k < width) store_part(to + k, (code_of(load_part(x + k, width - k), row) - zero) * scale, width - k);
}

// kInputGroup columns of a row in codes: the value of a code is scale * code.
struct GroupScale {
  float scale, inverse;
};

MOTE_INLINE F32x16 magnitude(F32x16 x) { return bits_to_f32(bits_to_i32(x) & splat_i32(0x7fffffff)); }

MOTE_INLINE GroupScale group_scale(F32x16 a, F32x16 b) {
  const F32x16 zero = splat(0.0f);  // second, so that what is no number counts as 0
  const float scale = max_lanes(max(max(magnitude(a), zero), max(magnitude(b), zero))) / 127.0f;
  if (!(scale >= 0x1p-126f)) return {0.0f, 0.0f};
  return {scale, 1.0f / scale};
}

MOTE_INLINE F32x16 group_code(F32x16 x, const GroupScale& group) {
  const F32x16 scaled = min(max(x * splat(group.inverse), splat(-127.0f)), splat(127.0f));
  return (scaled + splat(12582912.0f)) - splat(12582912.0f);
}

void quantize_groups(const float* x, int64_t width, int64_t step, int code_offset, int rows, int8_t* codes,
                     int32_t* offsets, float* lows, float* scales) {
  for (int64_t group = 0; group < width / kInputGroup; ++group) {
    const F32x16 values[2] = {load_f32(x + kInputGroup * group), load_f32(x + kInputGroup * group + 16)};
    const GroupScale made = group_scale(values[0], values[1]);
    scales[rows * group] = made.scale;
    int32_t sums[2];
    for (int half = 0; half < 2; ++half) {
      const I32x16 q = round_to_i32(group_code(values[half], made));
      sums[half] = sum_lanes(q);
      int8_t bytes[16];
      store_i8(bytes, q);
      for (int i = 0; i < 4; ++i) {
        std::memcpy(codes + rows * (kInputGroup * group + 16 * half + 4 * i), bytes + 4 * i, 4);
      }
    }
    const int64_t steps = kInputGroup / step;
    if (steps == 1) sums[0] += sums[1];
    for (int64_t s = 0; s < steps; ++s) {
      offsets[rows * (steps * group + s)] = -code_offset * sums[s];
      lows[rows * (steps * group + s)] = made.scale * static_cast<float>(sums[s]);
    }
  }
}

void round_groups(const float* x, int64_t width, float* to) {
  for (int64_t k = 0; k < width; k += kInputGroup) {
    const F32x16 values[2] = {load_f32(x + k), load_f32(x + k + 16)};
    const GroupScale made = group_scale(values[0], values[1]);
    for (int half = 0; half < 2; ++half)
      store_f32(to + k + 16 * half, group_code(values[half], made) * splat(made.scale));
  }
}

// body(index, load, store) for whole vectors, then once for the rest.
template <typename Body>
MOTE_INLINE void for_each_vector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    body(i, [](const float* from) { return load_f32(from); }, [](float* to, F32x16 x) { store_f32(to, x); });
  }
  if (i == count) return;
  const int64_t rest = count - i;
  body(
      i, [=](const float* from) { return load_part(from, rest); },
      [=](float* to, F32x16 x) { store_part(to, x, rest); });
}

void finish(const float* from, const float* bias, const float* residual, int64_t count, float* to) {
  for_each_vector(count, [&](int64_t i, const auto& load, const auto& store) {
    F32x16 value = load(from + i);
    if (bias != nullptr) value = value + load(bias + i);
    if (residual != nullptr) value = value + load(residual + i);
    store(to + i, value);
  });
}

MOTE_INLINE F32x16 gelu(F32x16 x) {
  float l[16];
  store_f32(l, x);
  for (float& value : l) {
    const auto wide = static_cast<double>(value);
    value = static_cast<float>(0.5 * wide * (1.0 + math::erf(wide * 0.70710678118654752440)));
  }
  return load_f32(l);
}

template <GateFunction kFunction>
MOTE_INLINE F32x16 apply(F32x16 x) {
  if constexpr (kFunction == GateFunction::kSilu) return silu(x);
  if constexpr (kFunction == GateFunction::kGelu) return gelu(x);
  if constexpr (kFunction == GateFunction::kGeluTanh) return gelu_tanh(x);
  if constexpr (kFunction == GateFunction::kSigmoid) return sigmoid(x);
  const F32x16 positive = select_less(x, splat(0.0f), splat(0.0f), x);
  if constexpr (kFunction == GateFunction::kRelu) return positive;
  if constexpr (kFunction == GateFunction::kReluSquared) return positive * positive;
  return x;
}

template <GateFunction kFunction>
void gate_rows(const float* gates, const float* gate_bias, const float* ups, const float* up_bias, int64_t count,
               float* to) {
  for_each_vector(count, [&](int64_t i, const auto& load, const auto& store) {
    F32x16 value = load(gates + i);
    if (gate_bias != nullptr) value = value + load(gate_bias + i);
    value = apply<kFunction>(value);
    if (ups != nullptr) value = value * (up_bias == nullptr ? load(ups + i) : load(ups + i) + load(up_bias + i));
    store(to + i, value);
  });
}

void gate(int function, const float* gates, const float* gate_bias, const float* ups, const float* up_bias,
          int64_t count, float* to) {
  using Run = decltype(&gate_rows<GateFunction::kSilu>);
  constexpr Run kRun[] = {gate_rows<GateFunction::kSilu>,       gate_rows<GateFunction::kGelu>,
                          gate_rows<GateFunction::kGeluTanh>,   gate_rows<GateFunction::kRelu>,
                          gate_rows<GateFunction::kSigmoid>,    gate_rows<GateFunction::kIdentity>,
                          gate_rows<GateFunction::kReluSquared>};
  kRun[function](gates, gate_bias, ups, up_bias, count, to);
}

constexpr RowKernels kRows = {rms_norm, rotate,       rotate_back, quantize, quantize_groups,
                              round,    round_groups, finish,      gate};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "rows_" MOTE_ISA_NAME, .role = RowKernels::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kRows);

}  // namespace MOTE_ISA
}  // namespace mote
