#include <cstring>

#include "kernels/kernel.h"
#include "kernels/machine/limits.h"
#include "kernels/simd/isa.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

using Line = uint64_t __attribute__((vector_size(64)));

// Four streams, as most kernels read four blocks of rows: most CPUs, but not those with kOneStream, read memory faster
// that way.
uint64_t read(const std::byte* from, size_t bytes) {
  const size_t part = bytes / 4;
  Line all[4] = {};
  for (size_t at = 0; at < part; at += sizeof(Line)) {
    for (size_t stream = 0; stream < 4; ++stream) {
      Line line;
      std::memcpy(&line, from + stream * part + at, sizeof line);
      all[stream] |= line;
    }
  }
  const Line merged = all[0] | all[1] | all[2] | all[3];
  uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits |= merged[i];
  return bits;
}

constexpr ReadProbe kProbe = {read};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "read_" MOTE_ISA_NAME, .role = ReadProbe::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kProbe);

}  // namespace MOTE_ISA
}  // namespace mote
