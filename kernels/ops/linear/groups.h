// What products with tiles of float16 scales share. Only for what is compiled for an instruction set.
#pragma once

#include <utility>

#include "kernels/ops/linear/tiles.h"

namespace mote {
inline namespace MOTE_ISA {

// A tile as its products see it. kCodes: bits, kCodebook, or kSmallCodebook, whose numbers are 5 bits wide (MXFP4,
// NVFP4) so that their products add up in 16 bits where that is faster.
inline constexpr int kCodebook = 0, kSmallCodebook = -1, kSmallBits = 5;
template <int kCodes> inline constexpr int kBitsOf = kCodes > 0 ? kCodes : kCodebookBits;

inline bool has_small_codebook(const TileBlocks& w) {
  if (!kWideMatters || w.scales.codebook == nullptr) return false;
  bool is_small = true;
  for (int i = 0; i < 16; ++i) is_small = is_small && w.scales.codebook[i] >= -16 && w.scales.codebook[i] < 16;
  return is_small;
}

// What a weight's codes are: one of the codebooks, or bits.
inline int codes_of(const TileBlocks& w) {
  if (has_small_codebook(w)) return kSmallCodebook;
  return w.scales.codebook != nullptr ? kCodebook : w.bits;
}

// Codes that dot4 would take as unsigned bytes above 127, and that are multiplied faster as signed ones.
constexpr bool is_signed(int codes) { return kWideMatters && (codes == kCodebook || codes == 8); }

// For with_constant. kFast: those that most models have get code of their own in builds for size too
struct AllCodes {
  static constexpr bool is_built(int codes) {
    return codes == kSmallCodebook ? kWideMatters : codes == kCodebook || has_products_of(codes);
  }
  static constexpr bool has_own_code(int) { return true; }
};
template <bool kFast>
struct FewCodes : AllCodes {
  static constexpr bool has_own_code(int codes) {
    const bool is_own = is_signed(codes) || codes == kSmallCodebook;
    return !kIsSmall || is_own || (kFast && !kOneVariant && (codes == kCodebook || codes == 6 || is_common(codes)));
  }
};
// What add_products makes a difference of, given such an argument: what an int stands for is at most 7 bits wide where
// that matters.
template <typename Codes> inline constexpr int kForm = 7;
template <int kCodes> inline constexpr int kForm<std::integral_constant<int, kCodes>> = kCodes;

// The numbers of a group of 16 rows: a weight is scale * code + low. Products are exact.
struct GroupNumbers {
  F32x16 scale, low;
};

// What one reads tiles by, the same for all of a weight.
class TileReader {
 public:
  explicit TileReader(const TileBlocks& w)
      : codes(codes_of(w)),
        has_low(w.scales.offset != WeightOffset::kNone),
        tile_columns(w.layout().tile_columns()),
        tile_bytes(w.layout().tile_bytes()),
        span_columns(w.layout().span_columns()),
        tiles_at(w.layout().tiles_at()),
        span_bytes(tiles_at + span_columns / tile_columns * tile_bytes),  // TileLayout's is not always inlined
        layout_(w.layout()),
        code_offset_(layout_.code_offset()),
        multiplied_(layout_.has_multipliers()),
        multipliers_at_(layout_.multipliers_at()),
        lows_at_(layout_.lows_at()),
        minimums_at_(layout_.scale_bytes()) {
    if (w.scales.codebook == nullptr) return;
    std::byte bytes[64];
    const int offset = codebook_offset(w);
    for (int i = 0; i < 64; ++i) bytes[i] = static_cast<std::byte>(w.scales.codebook[i % 16] + offset);
    codebook_ = load_bytes(bytes);
  }

  // What codebook_ adds to what codes stand for, so that dot4 takes it.
  static int codebook_offset(const TileBlocks& w) {
    if (has_small_codebook(w)) return code_offset(kSmallBits);
    return kCodesAreSigned || kWideMatters ? 0 : kCodebookOffset;
  }

  // Columns [32 chunk, 32 chunk + 32) of a tile as dot4 takes them.
  template <int kCodes>
  MOTE_INLINE void unpack(std::integral_constant<int, kCodes>, const std::byte* tile, int64_t chunk,
                          Bytes64* quads) const {
    unpack_digits<kBitsOf<kCodes>>(tile, tile_columns, chunk, quads);
    unroll<kQuads>([&](auto j) MOTE_INLINE_LAMBDA {
      if constexpr (kCodes <= 0)
        quads[j] = lookup_bytes(codebook_, quads[j]);
      else if constexpr (kCodesAreSigned || is_signed(kCodes))
        quads[j] = subtract(quads[j], code_offset_);
    });
  }
  [[gnu::noinline]] void unpack(int of, const std::byte* tile, int64_t chunk, Bytes64* quads) const {
    if constexpr (!kIsSmall)
      return with_constant<AllCodes>(of, [&](auto constant) { unpack(constant, tile, chunk, quads); });
    unpack_planes(of > 0 ? of : kCodebookBits, tile, tile_columns, chunk, quads);
    for (int j = 0; j < kQuads; ++j) {
      if (of <= 0)
        quads[j] = lookup_bytes(codebook_, quads[j]);
      else if (kCodesAreSigned || is_signed(of))
        quads[j] = subtract(quads[j], code_offset_);
    }
  }

  // What the groups of a span share where they have multipliers.
  MOTE_INLINE GroupNumbers shared(const std::byte* span) const {
    GroupNumbers result = {splat(1.0f), splat(1.0f)};
    if (!multiplied_ || layout_.scales.columns == 0) return result;
    result.scale = load_f16(span);
    if (has_low) result.low = load_f16(span + minimums_at_);
    return result;
  }

  // group: of the tile
  MOTE_INLINE GroupNumbers numbers(const std::byte* tile, const std::byte* span, const GroupNumbers& shared,
                                   int64_t group) const {
    if (multiplied_) {
      const auto of_group = [&](int64_t at) { return to_f32(load_i8(tile + at + kTileRows * group)); };
      return {shared.scale * of_group(multipliers_at_), has_low ? shared.low * of_group(lows_at_) : splat(0.0f)};
    }
    const std::byte* half = span + kHalfBytes * group;
    const F32x16 scale = load_f16(half);
    if (!has_low) return {scale, splat(0.0f)};
    if (layout_.scales.offset == WeightOffset::kMinimum) return {scale, load_f16(half + minimums_at_)};
    return {scale, scale * to_f32(load_i8(tile + lows_at_ + kTileRows * group))};
  }

  // Fetches what follows some tiles later: a whole span at once would be more than a core waits for at a time.
  MOTE_INLINE void fetch_tile(const std::byte* tile) const { fetch(tile, tile_bytes); }

  // body(tile, span, first column) for every tile of block `block` in columns [first, last).
  template <typename Body>
  MOTE_INLINE void for_each_tile(const std::byte* block, int64_t first, int64_t last, const Body& body) const {
    const std::byte* span = block + first / span_columns * span_bytes;
    for (int64_t column = first; column < last; span += span_bytes) {
      for (int64_t at = tiles_at; at < span_bytes; at += tile_bytes, column += tile_columns) {
        fetch_tile(span + at);
        body(span + at, span, column);
      }
    }
  }

  int codes;  // of the weight
  bool has_low;
  int64_t tile_columns, tile_bytes, span_columns, tiles_at, span_bytes;

 private:
  static constexpr int64_t kHalfBytes = kTileRows * dtype_bytes(DType::kFloat16);
  TileLayout layout_;
  int code_offset_;
  bool multiplied_;
  int64_t multipliers_at_, lows_at_, minimums_at_;
  Bytes64 codebook_ = zero_bytes();
};

// The scales of the rows of a stream, or 1.
MOTE_INLINE F32x16 row_scale(const TileBlocks& w, const TileReader& reader, int stream) {
  if (!w.scales.of_rows) return splat(1.0f);
  const std::byte* scales = w.blocks[stream] + w.columns() / reader.span_columns * reader.span_bytes;
  return load_f32(reinterpret_cast<const float*>(scales));
}

}  // namespace MOTE_ISA
}  // namespace mote
