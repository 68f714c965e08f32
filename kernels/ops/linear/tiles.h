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

// Whether a product is compiled in one variant where others read memory faster: in builds for size, and where products
// of bytes cost so much that memory waits for them.
#if defined(MOTE_SMALL_KERNELS) && !defined(MOTE_HAS_PRODUCTS)
inline constexpr bool kOneVariant = true;
#else
inline constexpr bool kOneVariant = false;
#endif

// The multipliers of a tile's 16 rows.
MOTE_INLINE I32x16 load_multipliers(int bits, const std::byte* tile, int64_t group_size) {
  return load_i8(tile + code_bytes(bits, group_size));
}

// The widths that this build multiplies, bit by bit.
inline constexpr unsigned kBuiltBits =
    is_built("weights.1") << 1 | is_built("weights.2") << 2 | is_built("weights.3") << 3 | is_built("weights.4") << 4 |
    is_built("weights.5") << 5 | is_built("weights.6") << 6 | is_built("weights.7") << 7 | is_built("weights.8") << 8;
constexpr bool has_products_of(int bits) { return is_weight_bits(bits) && (kBuiltBits >> bits & 1) != 0; }

// Widths of codes, all of them with code of their own.
struct AllWidths {
  static constexpr bool is_built(int bits) { return has_products_of(bits); }
  static constexpr bool has_own_code(int) { return true; }
};

// The widths that most models are stored in; what others gain by code of their own is not worth it.
constexpr bool is_common(int bits) { return bits == 4 || bits == 8; }

// Widths of codes, of which builds for size have code of their own for few.
struct FewWidths : AllWidths {
  static constexpr bool has_own_code(int bits) { return !kIsSmall || (!kOneVariant && is_common(bits)); }
};

// Calls function(value): with a constant where it has code of its own, else with an int, for what is compiled once for
// all of those.
template <typename Values, typename Function>
MOTE_INLINE void with_constant(int value, const Function& function) {
  bool is_done = false;
  unroll<10>([&](auto index) MOTE_INLINE_LAMBDA {
    constexpr int kValue = index - 1;
    if constexpr (Values::is_built(kValue) && Values::has_own_code(kValue)) {
      if (value != kValue) return;
      function(std::integral_constant<int, kValue>());
      is_done = true;
    }
  });
  constexpr bool kShare = [] {
    for (int i = -1; i < 9; ++i) {
      if (Values::is_built(i) && !Values::has_own_code(i)) return true;
    }
    return false;
  }();
  if constexpr (kShare) {
    if (!is_done) function(value);
  }
}

// The most bits that such an argument may stand for.
template <typename Bits> inline constexpr int kMostBits = 8;
template <int kBits> inline constexpr int kMostBits<std::integral_constant<int, kBits>> = kBits;

// unpack_chunk of a width that is a constant or not.
template <int kBits>
MOTE_INLINE void unpack_width(std::integral_constant<int, kBits>, const std::byte* tile, int64_t group_size,
                              int64_t chunk, Bytes64* quads) {
  unpack_chunk<kBits>(tile, group_size, chunk, quads);
}
MOTE_INLINE void unpack_width(int bits, const std::byte* tile, int64_t group_size, int64_t chunk, Bytes64* quads) {
  unpack_planes(bits, tile, group_size, chunk, quads);
  if constexpr (kCodesAreSigned) {
    for (int j = 0; j < kQuads; ++j) quads[j] = subtract(quads[j], code_offset(bits));
  }
}

inline bool takes_tiles(const WeightKind& kind) { return has_products_of(kind.bits) && kind.scales.columns == 0; }

}  // namespace MOTE_ISA
}  // namespace mote
