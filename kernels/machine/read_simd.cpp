#include <cstring>

#include "kernels/kernel.h"
#include "kernels/machine/limits.h"
#include "kernels/simd/isa.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// As wide as a register: compilers keep wider vectors in memory.
#if defined(__AVX512F__)
constexpr size_t kWidth = 64;
#elif defined(__AVX2__)
constexpr size_t kWidth = 32;
#else
constexpr size_t kWidth = 16;
#endif
using Vector = uint64_t __attribute__((vector_size(kWidth)));

template <size_t kStreams>
uint64_t read(const std::byte* from, size_t bytes) {
  constexpr size_t kLine = 64, kLines = kStreams == 1 ? 4 : 1, kParts = kLines * kLine / kWidth;
  const size_t part = bytes / kStreams;
  Vector all[kStreams][kParts] = {};
  for (size_t at = 0; at < part; at += kLines * kLine) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      for (size_t i = 0; i < kParts; ++i) {
        Vector vector;
        std::memcpy(&vector, from + stream * part + at + i * kWidth, sizeof vector);
        all[stream][i] |= vector;
      }
    }
  }
  uint64_t bits = 0;
  for (const auto& line : all) {
    for (const Vector& vector : line) {
      for (size_t i = 0; i < kWidth / sizeof bits; ++i) bits |= vector[i];
    }
  }
  return bits;
}

constexpr ReadProbe kProbe = {read<1>, read<4>};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "read_" MOTE_ISA_NAME, .role = ReadProbe::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kProbe);

}  // namespace MOTE_ISA
}  // namespace mote
