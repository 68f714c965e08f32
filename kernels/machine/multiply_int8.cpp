#include "kernels/kernel.h"
#include "kernels/machine/limits.h"
#include "kernels/simd/int8.h"
#include "kernels/simd/isa.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// Enough that no product waits for an earlier one, few enough to stay in registers.
constexpr int kSums = kPanelsAtOnce * kRunsAtOnce > 1 ? 16 : 5;

int32_t multiply(int64_t turns, int32_t seed) {
  I32x16 sums[kSums];
  for (I32x16& sum : sums) sum = splat_i32(0);
  const std::byte codes[128] = {std::byte{1}, std::byte{2}, std::byte{3}};
  const Bytes64 first = load_bytes(codes), second = load_bytes(codes + 64);
  for (int64_t turn = 0; turn < turns; ++turn) {
    asm volatile("" : "+r"(seed));  // else the compiler computes one turn and multiplies
    unroll<kSums>([&](auto index) { sums[index] = dot4<false>(sums[index], first, seed); });
    unroll<kSums>([&](auto index) { sums[index] = dot4<false>(sums[index], second, seed); });
  }
  uint32_t total = 0;
  for (const I32x16& sum : sums) {
    uint32_t lanes[16];
    store_i32(lanes, sum);
    for (const uint32_t lane : lanes) total += lane;
  }
  return static_cast<int32_t>(total);
}

constexpr Int8Probe kProbe = {int64_t{2} * kSums * 64, multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "multiply_" MOTE_ISA_NAME, .role = Int8Probe::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kProbe);

}  // namespace MOTE_ISA
}  // namespace mote
