// Channels are lanes, and the taps of 16 channels stay in registers or the first cache from token to token.
#include "kernels/ops/short_conv/short_conv.h"

#include "kernels/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// The weights of 16 channels, tap by tap.
MOTE_INLINE void turn(const ShortConvBlock& block, float (*weights)[16]) {
  for (int64_t j = 0; j < block.taps; ++j) {
    for (int64_t c = 0; c < 16; ++c) weights[j][c] = c < block.channels ? block.weight[c * block.taps + j] : 0.0f;
  }
}

// The same of 16 channels with four taps, which for one token is most of the work.
MOTE_INLINE void turn_4(const float* weight, float (*weights)[16]) {
#if !defined(MOTE_SIMD_GENERIC) && defined(__AVX512F__)
  const __m512i places = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  __m512 own[4];
  for (int i = 0; i < 4; ++i) own[i] = _mm512_loadu_ps(weight + 16 * i);
  for (int j = 0; j < 4; ++j) {
    const __m512i of_tap = _mm512_add_epi32(places, _mm512_set1_epi32(j));
    const __m512 low = _mm512_permutex2var_ps(own[0], of_tap, own[1]);
    const __m512 high = _mm512_permutex2var_ps(own[2], of_tap, own[3]);
    _mm512_storeu_ps(weights[j], _mm512_shuffle_f32x4(low, high, 0x44));
  }
#elif !defined(MOTE_SIMD_GENERIC) && defined(__AVX2__)
  for (int c = 0; c < 16; c += 4) {
    __m128 own[4];
    for (int i = 0; i < 4; ++i) own[i] = _mm_loadu_ps(weight + 4 * (c + i));
    _MM_TRANSPOSE4_PS(own[0], own[1], own[2], own[3]);
    for (int j = 0; j < 4; ++j) _mm_storeu_ps(weights[j] + c, own[j]);
  }
#elif !defined(MOTE_SIMD_GENERIC) && defined(__aarch64__)
  for (int c = 0; c < 16; c += 4) {
    const float32x4x4_t own = vld4q_f32(weight + 4 * c);
    for (int j = 0; j < 4; ++j) vst1q_f32(weights[j] + c, own.val[j]);
  }
#else
  for (int c = 0; c < 16; ++c) {
    for (int j = 0; j < 4; ++j) weights[j][c] = weight[4 * c + j];
  }
#endif
}

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
  block.taps == 4 && block.channels == 16 ? turn_4(block.weight, weights) : turn(block, weights);
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
