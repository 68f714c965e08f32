// 16 rows x 4 columns of weight codes, and their products with 4 activation codes that all rows share. Like vectors.h,
// only for what is compiled for an instruction set.
//
// Codes have the form that the CPU's instruction takes: code_at (formats.h), 0 .. 255, where it multiplies unsigned by
// signed bytes (x86; the portable code too), or code_at - code_offset (Arm). kCodesAreSigned says which.
//
// kWideMatters: dot4 costs more with kWide. kPanelsAtOnce x kTokensAtOnce: blocks of 16 rows x tokens whose totals fit
// the registers.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/formats.h"
#include "kernels/simd/vectors.h"

#if defined(__AVX512BW__)
#include "kernels/simd/int8_avx512.h"
#elif defined(__AVX2__)
#include "kernels/simd/int8_avx2.h"
#elif defined(__aarch64__)
#include "kernels/simd/int8_neon.h"
#else
#include "kernels/simd/int8_generic.h"
#endif

namespace mote {
inline namespace MOTE_ISA {

inline constexpr int64_t kChunk = 32;      // columns of a tile that are unpacked at once
inline constexpr int kQuads = kChunk / 4;  // vectors of a chunk, each of 16 rows x 4 columns
inline constexpr int32_t kOnes = 0x01010101;

template <int... kIndex, typename Function>
MOTE_INLINE void unroll_list(std::integer_sequence<int, kIndex...>, const Function& function) {
  (function(std::integral_constant<int, kIndex>()), ...);
}
// function(0), ..., function(kCount - 1), each index a constant.
template <int kCount, typename Function>
MOTE_INLINE void unroll(const Function& function) {
  unroll_list(std::make_integer_sequence<int, kCount>(), function);
}

// code_at of columns [32 chunk, 32 chunk + 32) of a tile (docs/file-format.md): four of them, in order, to each quad.
template <int kBits>
MOTE_INLINE void unpack_digits(const std::byte* tile, int64_t group_size, int64_t chunk, Bytes64* quads) {
  constexpr int kWide = kBits & 4 ? 4 : 0, kMiddle = kBits & 2 ? 2 : 0;
  const std::byte* wide = tile + chunk * 64 * 4;
  const std::byte* middle = tile + group_size * 2 * kWide + chunk * 64 * 2;
  const std::byte* narrow = tile + group_size * 2 * (kWide + kMiddle) + chunk * 64;
  unroll<kQuads>([&](auto index) {
    constexpr int j = index;
    if constexpr (kBits == 8) {
      quads[j] = load_bytes(tile + chunk * 64 * 8 + 64 * j);
    } else {
      Bytes64 codes = zero_bytes();
      if constexpr (kWide != 0) codes = field<4, j % 2, 0>(load_bytes(wide + 64 * (j / 2)));
      if constexpr (kMiddle != 0) codes = codes | field<2, j % 4, kWide>(load_bytes(middle + 64 * (j / 4)));
      // A 1-bit digit d stands for 2 d - 1, so its code is 2 d and its offset 1.
      if constexpr ((kBits & 1) != 0) codes = codes | field<1, j, kBits == 1 ? 1 : kWide + kMiddle>(load_bytes(narrow));
      quads[j] = codes;
    }
  });
}

// The 4 columns of a quad's rows as one word a row.
MOTE_INLINE I32x16 as_words(const Bytes64& quad) {
  std::byte bytes[64];
  store_bytes(bytes, quad);
  return load_i32(bytes);
}

// unpack_digits of a width that is known only when the program runs.
template <int kPlane>
MOTE_INLINE void add_plane(const std::byte* plane, int64_t chunk, int shift, Bytes64* quads) {
  const I32x16 factor = splat_i32(1 << shift);  // no byte carries
  unroll<kQuads>([&](auto j) MOTE_INLINE_LAMBDA {
    const std::byte* from = plane + 64 * (kPlane * chunk + kPlane * j / 8);
    const Bytes64 digits = field<kPlane, j % (8 / kPlane), 0>(load_bytes(from));
    quads[j] = quads[j] | as_bytes(as_words(digits) * factor);
  });
}
[[gnu::noinline]] inline void unpack_planes(int bits, const std::byte* tile, int64_t group_size, int64_t chunk,
                                            Bytes64* quads) {
  if (bits == 8) return unpack_digits<8>(tile, group_size, chunk, quads);
  for (int j = 0; j < kQuads; ++j) quads[j] = zero_bytes();
  if (bits & 4) add_plane<4>(tile, chunk, 0, quads);
  tile += group_size * 2 * (bits & 4);
  if (bits & 2) add_plane<2>(tile, chunk, bits & 4, quads);
  tile += group_size * 2 * (bits & 2);
  if (bits & 1) add_plane<1>(tile, chunk, bits == 1 ? 1 : bits & 6, quads);
}

// The same as dot4 takes them.
template <int kBits>
MOTE_INLINE void unpack_chunk(const std::byte* tile, int64_t group_size, int64_t chunk, Bytes64* quads) {
  unpack_digits<kBits>(tile, group_size, chunk, quads);
  if constexpr (kCodesAreSigned) {
    unroll<kQuads>([&](auto j) { quads[j] = subtract(quads[j], code_offset(kBits)); });
  }
}

// The products of kCount quads of a chunk, as unpack_chunk gives them, with kRows rows of activations, added to their
// totals: the bytes of row t for quad j are at codes + 4 (kRows j + t). kBits: the most that a code has
template <int kBits, int kRows, int kCount = kQuads>
MOTE_INLINE void add_chunk_products(const Bytes64* quads, const int8_t* codes, I32x16* totals) {
#if defined(MOTE_HAS_DOT_PAIRS)
  // Quads whose pairs of products add up within 16 bits: (2^bits - 1) * 128 * 2 * kFit < 2^15.
  constexpr int kFit = kBits <= 4 ? 8 : kBits == 5 ? 4 : kBits == 6 ? 2 : 1;
  constexpr int kTogether = kFit < kCount ? kFit : kCount;
  if constexpr (kTogether > 1) {
    Bytes64 pairs[kRows];
    unroll<kCount>([&](auto j) MOTE_INLINE_LAMBDA {
      unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
        int32_t bytes;
        std::memcpy(&bytes, codes + 4 * (j * kRows + t), sizeof(bytes));
        const Bytes64 products = dot_pairs(quads[j], bytes);
        pairs[t] = j % kTogether == 0 ? products : add_pairs(pairs[t], products);
        // Else gcc adds in another order, for which it keeps all products: one row's fit the registers.
        if constexpr (kRows > 1) hide(pairs[t]);
        if constexpr (j % kTogether == kTogether - 1) totals[t] = add_widened(totals[t], pairs[t]);
      });
    });
    return;
  }
#endif
#if defined(MOTE_HAS_DOT_LANES)
  if constexpr (kRows == 1 && kCount % 4 == 0) {
    unroll<kCount / 4>([&](auto run) MOTE_INLINE_LAMBDA {
      const auto lanes = load_lanes<4>(codes + 16 * run);
      unroll<4>([&](auto j) MOTE_INLINE_LAMBDA { totals[0] = dot4_lane<j>(totals[0], quads[4 * run + j], lanes); });
    });
    return;
  }
  if constexpr (kRows == 2 || kRows == 4) {
    unroll<kCount>([&](auto j) MOTE_INLINE_LAMBDA {
      const auto lanes = load_lanes<kRows>(codes + 4 * j * kRows);
      unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA { totals[t] = dot4_lane<t>(totals[t], quads[j], lanes); });
    });
    return;
  }
#endif
  unroll<kCount>([&](auto j) MOTE_INLINE_LAMBDA {
    unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
      totals[t] = dot4_at<kBits == 8>(totals[t], quads[j], codes + 4 * (j * kRows + t));
    });
  });
}

// multiplier * code of 16 rows as bytes that dot4 takes: signed if kCodesAreSigned, else with kProductOffset added.
// Only for formats whose products fit a byte.
inline constexpr int kProductOffset = 128;
class ByteProducts {
 public:
  // Multipliers above the format's max_multiplier, which a file may hold, give wrong products but nothing undefined.
  ByteProducts(int bits, const I32x16& multipliers)
      : multipliers_(as_bytes(kCodesAreSigned ? (multipliers & splat_i32(0xff)) * splat_i32(0x01010101)
                                              : (multipliers & splat_i32(0xffff)) * splat_i32(0x00010001))),
        offsets_(as_bytes((splat_i32(kProductOffset) - multipliers * splat_i32(code_offset(bits))) *
                          splat_i32(0x01010101))) {}

  MOTE_INLINE Bytes64 operator()(const Bytes64& codes) const {
#if defined(__aarch64__)
    return multiply_bytes(codes, multipliers_);
#else
    return add_pairs(multiply_pairs(codes, multipliers_), offsets_);  // two bytes at once; neither carries
#endif
  }

 private:
  Bytes64 multipliers_, offsets_;
};

}  // namespace MOTE_ISA
}  // namespace mote
