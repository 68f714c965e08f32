#include "kernels/kernel.h"
#include "kernels/machine/limits.h"
#include "kernels/simd/int8.h"
#include "kernels/simd/isa.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

Bytes64 first_codes() {
  const std::byte codes[64] = {std::byte{1}, std::byte{2}, std::byte{3}};
  return load_bytes(codes);
}

template <int kCount>
int32_t total_of(const I32x16 (&sums)[kCount]) {
  uint32_t total = 0;
  for (const I32x16& sum : sums) {
    uint32_t lanes[16];
    store_i32(lanes, sum);
    for (const uint32_t lane : lanes) total += lane;
  }
  return static_cast<int32_t>(total);
}

// Enough that no product waits for an earlier one, few enough to stay in registers.
constexpr int kSums = kPanelsAtOnce > 1 ? 16 : 5;

// A product whose codes the compiler knew would be computed once for all sums, or before the loop.
template <bool kWide>
int32_t multiply(int64_t turns, int32_t seed) {
  I32x16 sums[kSums];
  for (I32x16& sum : sums) sum = splat_i32(0);
  Bytes64 codes = first_codes();
  for (int64_t turn = 0; turn < turns; ++turn) {
    unroll<kSums>([&](auto index) MOTE_INLINE_LAMBDA {
      hide(codes);
      sums[index] = dot4<kWide>(sums[index], codes, seed);
    });
  }
  return total_of(sums);
}

#if defined(MOTE_HAS_DOT_PAIRS)
// As add_chunk_products multiplies codes of 4 bits.
constexpr int kTokens = 2;

int32_t multiply_in_pairs(int64_t turns, int32_t seed) {
  I32x16 sums[kTokens];
  for (I32x16& sum : sums) sum = splat_i32(0);
  Bytes64 codes = first_codes();
  for (int64_t turn = 0; turn < turns; ++turn) {
    Bytes64 pairs[kTokens];
    unroll<kQuads>([&](auto j) MOTE_INLINE_LAMBDA {
      unroll<kTokens>([&](auto t) MOTE_INLINE_LAMBDA {
        hide(codes);
        const Bytes64 products = dot_pairs(codes, seed);
        pairs[t] = j == 0 ? products : add_pairs(pairs[t], products);
        hide(pairs[t]);  // as there
      });
    });
    unroll<kTokens>([&](auto t) MOTE_INLINE_LAMBDA { sums[t] = add_widened(sums[t], pairs[t]); });
  }
  return total_of(sums);
}

constexpr Int8Probe kProbe = {{int64_t{kTokens} * kQuads * 64, multiply_in_pairs},
                              {int64_t{kSums} * 64, multiply<kWideMatters>}};
#else
constexpr Int8Probe kProbe = {{int64_t{kSums} * 64, multiply<false>}, {int64_t{kSums} * 64, multiply<kWideMatters>}};
#endif

}  // namespace

MOTE_REGISTER_KERNEL(.name = "multiply_" MOTE_ISA_NAME, .role = Int8Probe::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kProbe);

}  // namespace MOTE_ISA
}  // namespace mote
