// What this machine can do at most, which kernels are measured by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "kernels/thread_pool.h"

namespace mote {

struct Limits {
  // 10^9 bytes a second, from twice the last cache if memory allows: of one stream of addresses a thread and of four
  // side by side the faster, from large pages where the system has them. The median of some twenty passes.
  double read_gb_s = 0;
  // 10^9 multiply-accumulates a second of int8 inputs and codes of 4 bits in the vector units, and of 8 bits, by the
  // instructions that this CPU's kernels have for them. The best of several passes.
  double int8_gmac_s = 0;
  double int8_wide_gmac_s = 0;
};

// Measures with all threads of the pool. Cost: about a second, and up to a quarter of
// the memory. Errors: kOutOfMemory if there is none for the buffer.
Result<Limits> measure_limits(ThreadPool& threads);

// What the variants supply. Plain structs only, since files that are compiled for newer CPUs include this
// (kernels/simd/vectors.h says why).
struct ReadProbe {
  static constexpr std::string_view kRole = "limits.read";
  // All words or-ed together; bytes: a multiple of 4096
  uint64_t (*read_one)(const std::byte* from, size_t bytes);
  uint64_t (*read_four)(const std::byte* from, size_t bytes);
};
struct Int8Probe {
  static constexpr std::string_view kRole = "limits.int8";
  struct Loop {
    int64_t macs_per_turn;
    // The sum of all products, for tests: turns * macs_per_turn / 64 * (s0 + 2 s1 + 3 s2), modulo 2^32, where s0, s1
    // and s2 are the low three bytes of the seed, signed.
    int32_t (*multiply)(int64_t turns, int32_t seed);
  };
  Loop narrow;  // codes of 4 bits
  Loop wide;    // codes of 8 bits
};

}  // namespace mote
