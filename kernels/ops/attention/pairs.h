// 16 pairs of 16-bit integers, made of a cache's codes, and their products with one pair that all lanes share. Sums of
// products are exact: 256 of 127 * 32767 fit 31 bits. Like kernels/simd/vectors.h, only for *_simd.cpp.
#pragma once

#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {

#if defined(__AVX512BW__)

struct Pairs16 {
  __m512i v;
};
// 32 signed bytes.
MOTE_INLINE Pairs16 load_pairs_i8(const std::byte* from) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
// 32 bytes, of which the low nibbles less 8 are one vector and the high nibbles less 8 the other.
MOTE_INLINE void load_pairs_i4(const std::byte* from, Pairs16& low, Pairs16& high) {
  const __m512i wide = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  const __m512i eight = _mm512_set1_epi16(8);
  low.v = _mm512_sub_epi16(_mm512_and_si512(wide, _mm512_set1_epi16(15)), eight);
  high.v = _mm512_sub_epi16(_mm512_srli_epi16(wide, 4), eight);
}
// Lane i: sums + x[2i] * pair[0] + x[2i + 1] * pair[1].
#if defined(__AVX512VNNI__)
// Assembly, because gcc 12 copies every sum twice around the intrinsic.
MOTE_INLINE I32x16 dot2(I32x16 sums, Pairs16 x, const int16_t* pair) {
  int32_t both;
  std::memcpy(&both, pair, sizeof(both));
  __asm__("vpdpwssd %2, %1, %0" : "+v"(sums.v) : "v"(x.v), "v"(_mm512_set1_epi32(both)));
  return sums;
}
// The same for a pair that few products share: each product reads it from memory.
MOTE_INLINE I32x16 dot2_once(I32x16 sums, Pairs16 x, const int16_t* pair) {
  struct [[gnu::packed, gnu::may_alias]] Both {
    int32_t value;
  };
  __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sums.v) : "v"(x.v), "m"(reinterpret_cast<const Both*>(pair)->value));
  return sums;
}
#else
MOTE_INLINE I32x16 dot2(I32x16 sums, Pairs16 x, const int16_t* pair) {
  int32_t both;
  std::memcpy(&both, pair, sizeof(both));
  return {_mm512_add_epi32(sums.v, _mm512_madd_epi16(x.v, _mm512_set1_epi32(both)))};
}
#endif
// For values that fit 16 bits.
MOTE_INLINE void store_i16(int16_t* to, I32x16 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(x.v));
}

#elif defined(__AVX2__)

struct Pairs16 {
  __m256i a, b;
};
MOTE_INLINE Pairs16 load_pairs_i8(const std::byte* from) {
  const __m128i* halves = reinterpret_cast<const __m128i*>(from);
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(halves)), _mm256_cvtepi8_epi16(_mm_loadu_si128(halves + 1))};
}
MOTE_INLINE void load_pairs_i4(const std::byte* from, Pairs16& low, Pairs16& high) {
  const __m128i* halves = reinterpret_cast<const __m128i*>(from);
  const __m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128(halves)),
                b = _mm256_cvtepu8_epi16(_mm_loadu_si128(halves + 1));
  const __m256i eight = _mm256_set1_epi16(8), nibble = _mm256_set1_epi16(15);
  low = {_mm256_sub_epi16(_mm256_and_si256(a, nibble), eight), _mm256_sub_epi16(_mm256_and_si256(b, nibble), eight)};
  high = {_mm256_sub_epi16(_mm256_srli_epi16(a, 4), eight), _mm256_sub_epi16(_mm256_srli_epi16(b, 4), eight)};
}
MOTE_INLINE I32x16 dot2(I32x16 sums, Pairs16 x, const int16_t* pair) {
  int32_t both;
  std::memcpy(&both, pair, sizeof(both));
  const __m256i all = _mm256_set1_epi32(both);
  return {_mm256_add_epi32(sums.a, _mm256_madd_epi16(x.a, all)), _mm256_add_epi32(sums.b, _mm256_madd_epi16(x.b, all))};
}
MOTE_INLINE void store_i16(int16_t* to, I32x16 x) {
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), packed);
}

#elif defined(__aarch64__)

struct Pairs16 {
  int16x8_t even[2], odd[2];
};
MOTE_INLINE Pairs16 load_pairs_i8(const std::byte* from) {
  const int8_t* bytes = reinterpret_cast<const int8_t*>(from);
  const int8x8x2_t a = vld2_s8(bytes), b = vld2_s8(bytes + 16);
  return {{vmovl_s8(a.val[0]), vmovl_s8(b.val[0])}, {vmovl_s8(a.val[1]), vmovl_s8(b.val[1])}};
}
MOTE_INLINE void load_pairs_i4(const std::byte* from, Pairs16& low, Pairs16& high) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(from);
  const uint8x8_t nibble = vdup_n_u8(15);
  const int8x8_t eight = vdup_n_s8(8);
  for (int i = 0; i < 2; ++i) {
    const uint8x8x2_t x = vld2_u8(bytes + 16 * i);
    low.even[i] = vsubl_s8(vreinterpret_s8_u8(vand_u8(x.val[0], nibble)), eight);
    low.odd[i] = vsubl_s8(vreinterpret_s8_u8(vand_u8(x.val[1], nibble)), eight);
    high.even[i] = vsubl_s8(vreinterpret_s8_u8(vshr_n_u8(x.val[0], 4)), eight);
    high.odd[i] = vsubl_s8(vreinterpret_s8_u8(vshr_n_u8(x.val[1], 4)), eight);
  }
}
MOTE_INLINE I32x16 dot2(I32x16 sums, Pairs16 x, const int16_t* pair) {
  for (int i = 0; i < 2; ++i) {
    int32x4_t low = vmlal_n_s16(sums.v[2 * i], vget_low_s16(x.even[i]), pair[0]);
    int32x4_t high = vmlal_high_n_s16(sums.v[2 * i + 1], x.even[i], pair[0]);
    sums.v[2 * i] = vmlal_n_s16(low, vget_low_s16(x.odd[i]), pair[1]);
    sums.v[2 * i + 1] = vmlal_high_n_s16(high, x.odd[i], pair[1]);
  }
  return sums;
}
MOTE_INLINE void store_i16(int16_t* to, I32x16 x) {
  for (int i = 0; i < 4; ++i) vst1_s16(to + 4 * i, vmovn_s32(x.v[i]));
}

#else

struct Pairs16 {
  int16_t v[32];
};
MOTE_INLINE Pairs16 load_pairs_i8(const std::byte* from) {
  const int8_t* bytes = reinterpret_cast<const int8_t*>(from);
  Pairs16 result;
  for (int i = 0; i < 32; ++i) result.v[i] = bytes[i];
  return result;
}
MOTE_INLINE void load_pairs_i4(const std::byte* from, Pairs16& low, Pairs16& high) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(from);
  for (int i = 0; i < 32; ++i) {
    low.v[i] = static_cast<int16_t>((bytes[i] & 15) - 8);
    high.v[i] = static_cast<int16_t>((bytes[i] >> 4) - 8);
  }
}
MOTE_INLINE I32x16 dot2(const I32x16& sums, const Pairs16& x, const int16_t* pair) {
  return each_i32([&](int i) { return sums.v[i] + x.v[2 * i] * pair[0] + x.v[2 * i + 1] * pair[1]; });
}
MOTE_INLINE void store_i16(int16_t* to, const I32x16& x) {
  for (int i = 0; i < 16; ++i) to[i] = static_cast<int16_t>(x.v[i]);
}

#endif

// to[i] = a[i] * b[i] / 2^15, rounded, of 16; not both -2^15.
MOTE_INLINE void multiply_i16(int16_t* to, const int16_t* a, const int16_t* b) {
#if defined(__AVX2__)
  const auto load = [](const int16_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); };
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_mulhrs_epi16(load(a), load(b)));
#elif defined(__aarch64__)
  for (int i = 0; i < 16; i += 8) vst1q_s16(to + i, vqrdmulhq_s16(vld1q_s16(a + i), vld1q_s16(b + i)));
#else
  for (int i = 0; i < 16; ++i) to[i] = static_cast<int16_t>((int32_t{a[i]} * b[i] + (1 << 14)) >> 15);
#endif
}

#if !defined(__AVX512VNNI__)
MOTE_INLINE I32x16 dot2_once(I32x16 sums, Pairs16 x, const int16_t* pair) { return dot2(sums, x, pair); }
#endif

}  // namespace MOTE_ISA
}  // namespace mote
