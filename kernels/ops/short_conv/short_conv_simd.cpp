// Channels are lanes, and the taps of 16 channels stay in registers or the first cache from token to token.
#include "kernels/ops/short_conv/short_conv.h"

#include "kernels/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// kTaps 0: any number.
template <int kTaps>
MOTE_INLINE void run_taps(const ShortConvBlock& block, const float (*weights)[16]) {
  const int64_t taps = kTaps == 0 ? block.taps : kTaps, count = block.channels;
  const F32x16 bias = block.bias == nullptr ? splat(0.0f) : load_upto(block.bias, count);
  const auto row_of = [&](int64_t row) {
    return load_upto(row < taps - 1 ? block.state + row * block.row : block.x + (row - taps + 1) * block.x_step, count);
  };
  for (int64_t t = 0; t < block.tokens; ++t) {
    F32x16 sum = splat(0.0f);
    for (int64_t j = 0; j < taps; ++j) sum = fma(load_f32(weights[j]), row_of(t + j), sum);
    store_upto(block.y + t * block.row, sum + bias, count);
  }
  // Ascending: a row is read before it is overwritten.
  for (int64_t row = 0; row + 1 < taps; ++row) {
    store_upto(block.state + row * block.row, row_of(block.tokens + row), count);
  }
}

void run(const ShortConvBlock& block) {
  float weights[ShortConvFunctions::kMaxTaps][16];
  for (int64_t j = 0; j < block.taps; ++j) {
    for (int64_t c = 0; c < 16; ++c) weights[j][c] = c < block.channels ? block.weight[c * block.taps + j] : 0.0f;
  }
  if (block.taps == 4) return run_taps<4>(block, weights);
  if (block.taps == 3) return run_taps<3>(block, weights);
  run_taps<0>(block, weights);
}

constexpr ShortConvFunctions kFunctions = {run};

MOTE_REGISTER_KERNEL(.name = "short_conv_" MOTE_ISA_NAME, .role = ShortConvFunctions::kRole, .needs = kNeeds,
                     .rank = kRank, .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
