// What this CPU has that a kernel may need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace mote {

// But for the last two, one bit for each set of instructions that source files are compiled for (cmake/MoteIsa.cmake).
enum class CpuFeature : uint32_t {
  kAvx2 = 1u << 0,        // avx2, fma, f16c
  kAvxVnni = 1u << 1,     // avx_vnni
  kAvx512 = 1u << 2,      // avx512 f, bw, dq, vl
  kAvx512Vnni = 1u << 3,  // the same and avx512 vnni
  kAmx = 1u << 4,         // amx-tile, amx-int8, and the system lets this process use them
  kDotprod = 1u << 5,     // asimddp
  kI8mm = 1u << 6,        // i8mm
  kSme = 1u << 7,         // sme, with vectors of 512 bits in its mode
  kOneStream = 1u << 8,   // no instruction: memory is read fastest in one stream of addresses, not in several in turn
  kFetchedStream = 1u << 9,  // with kOneStream: faster still where instructions fetch the stream ahead
};

struct CpuFeatures {
  uint32_t bits = 0;

  constexpr CpuFeatures() = default;
  constexpr CpuFeatures(CpuFeature feature) : bits(static_cast<uint32_t>(feature)) {}
  constexpr CpuFeatures operator|(CpuFeatures other) const { return from_bits(bits | other.bits); }
  constexpr CpuFeatures operator&(CpuFeatures other) const { return from_bits(bits & other.bits); }
  constexpr CpuFeatures without(CpuFeatures other) const { return from_bits(bits & ~other.bits); }
  constexpr bool has_all(CpuFeatures other) const { return (bits & other.bits) == other.bits; }
  static constexpr CpuFeatures from_bits(uint32_t bits) {
    CpuFeatures features;
    features.bits = bits;
    return features;
  }
};

// Names separated by '+', "none" if there are none.
std::string to_string(CpuFeatures features);

// What the CPU and the system offer.
CpuFeatures detect_cpu_features();
// What the CPU calls itself: on x86 with its family, model and stepping as one number, on Arm's Linux the register
// MIDR_EL1 of the first core; empty where it does not tell.
std::string cpu_name();

// Reads a list such as "avx2,avxvnni" or "avx2+avxvnni" ("none": no feature). Errors: kInvalidArgument for a name that
// is not one.
Result<CpuFeatures> parse_cpu_features(std::string_view text);

// What kernels may use: what was detected and, if MOTE_CPU_FEATURES is set, is listed there. Read once a process.
// Errors: kInvalidArgument if MOTE_CPU_FEATURES holds a name that is not a feature.
const Result<CpuFeatures>& cpu_features();

// Whether some kernels use this CPU's vectors. If not, the portable ones run, which are many times slower.
bool has_vector_kernels();

}  // namespace mote
