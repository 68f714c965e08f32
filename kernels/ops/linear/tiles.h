// What all products with tiles share. Only for what is compiled for an instruction set.
#pragma once

#include <utility>

#include "base/parts.h"
#include "kernels/kernel.h"
#include "kernels/ops/linear/kernels.h"
#include "kernels/simd/int8.h"

namespace mote {
inline namespace MOTE_ISA {

// Bytes. The hardware stops fetching ahead at the end of each 4 KiB page of a mapped file, so instructions do it.
inline constexpr int64_t kFetchAhead = 1024;

MOTE_INLINE void fetch(const std::byte* tile, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + kFetchAhead + i);
}

// The multipliers of a tile's 16 rows.
template <int kBits>
MOTE_INLINE I32x16 load_multipliers(const std::byte* tile, int64_t group_size) {
  return load_i8(tile + code_bytes(kBits, group_size));
}

// The widths that this build multiplies, bit by bit.
inline constexpr unsigned kBuiltBits =
    is_built("weights.1") << 1 | is_built("weights.2") << 2 | is_built("weights.3") << 3 | is_built("weights.4") << 4 |
    is_built("weights.5") << 5 | is_built("weights.6") << 6 | is_built("weights.7") << 7 | is_built("weights.8") << 8;
constexpr bool has_products_of(int bits) { return is_weight_bits(bits) && (kBuiltBits >> bits & 1) != 0; }

// Calls function(constant) for the constant `bits`.
template <typename Function>
MOTE_INLINE void with_bits(int bits, const Function& function) {
  unroll<8>([&](auto index) {
    if constexpr (has_products_of(index + 1)) {
      if (bits == index + 1) function(std::integral_constant<int, index + 1>());
    }
  });
}

inline bool takes_tiles(const WeightKind& kind) { return has_products_of(kind.bits) && kind.scales.columns == 0; }

}  // namespace MOTE_ISA
}  // namespace mote
