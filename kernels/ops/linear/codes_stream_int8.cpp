// int8 activations x tiles of 1 to 8 bits for few tokens: weights are unpacked in registers, once for all tokens. Up to
// four streams of them are read side by side, or one after the other: CPUs differ in what their memory answers faster.
#include "kernels/ops/linear/codes.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// Where dot4 takes signed bytes, codes of less than 8 bits are such bytes as they are: nothing need be subtracted.
template <int kBits> inline constexpr bool kIsSigned = kCodesAreSigned && kBits == 8;

template <int kBits>
MOTE_INLINE void unpack(const std::byte* tile, int64_t group_size, int64_t chunk, Bytes64* quads) {
  if constexpr (kIsSigned<kBits>)
    unpack_chunk<kBits>(tile, group_size, chunk, quads);
  else
    unpack_digits<kBits>(tile, group_size, chunk, quads);
}

// Bytes ahead of a tile that are fetched, 0: none. A single stream is left to the hardware, which fetches it ahead
// faster than instructions do, but not where a tile takes AVX2 so many instructions that the hardware starts late in
// each page.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr int64_t kAheadOfOne = 3072;
#else
constexpr int64_t kAheadOfOne = 0;
#endif
template <int kStreams> inline constexpr int64_t kAhead = kStreams == 1 ? kAheadOfOne : kFetchAhead;

template <int kStreams, int kBits, int kGroup>
MOTE_INLINE void fetch_tile(const std::byte* tile, int64_t bytes) {
  if constexpr (kAhead<kStreams> == 0) return;
  tile += kAhead<kStreams>;
  if constexpr (kGroup == 0) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + i);
  } else {
    unroll<static_cast<int>((tile_bytes(kBits, kGroup) + 63) / 64)>([&](auto i) { __builtin_prefetch(tile + 64 * i); });
  }
}

// Whether the sums of weights alone are wanted.
bool has_zeros(const CodeBlock& x) {
  bool found = false;
  for (int t = 0; t < x.count; ++t) found = found || x.zeros[t] != 0;
  return found;
}

// One group of one stream: adds to sums[t], and to weight_sums if zeros.
template <int kBits, int kTokens>
MOTE_INLINE void add_tile(const std::byte* tile, int64_t group_size, const CodeBlock& x, int64_t group, bool zeros,
                          I32x16* sums, I32x16& weight_sums) {
  I32x16 totals[kTokens], codes_alone = splat_i32(0);
  for (int t = 0; t < kTokens; ++t) totals[t] = first_sums<kIsSigned<kBits>>(x.offsets + group * kTokens + t);
  const int8_t* row = x.codes + group * group_size * kTokens;
  for (int64_t chunk = 0; chunk < group_size / kChunk; ++chunk, row += kChunk * kTokens) {
    Bytes64 quads[kQuads];
    unpack<kBits>(tile, group_size, chunk, quads);
    if (zeros) unroll<kQuads>([&](auto j) { codes_alone = dot4<kBits == 8>(codes_alone, quads[j], kOnes); });
    add_chunk_products<kBits, kTokens>(quads, row, totals);
  }
  const I32x16 multipliers = load_multipliers<kBits>(tile, group_size);
  if (zeros) weight_sums = weight_sums + multipliers * code_sums<kBits, kIsSigned<kBits>>(codes_alone, group_size);
  for (int t = 0; t < kTokens; ++t) sums[t] = sums[t] + multipliers * totals[t];
}

// Blocks [first, first + kStreams) of weights. Every index of a sum is a constant, so that sums stay in registers.
// kGroup: 32, the size that models are stored in and that is short enough to be unrolled, or 0 for any.
template <int kStreams, int kBits, int kTokens, int kGroup, typename Zeros>
void stream_few(const TileBlocks& w, int first, const CodeBlock& x, Zeros zeros, float* y, int64_t stride) {
  I32x16 sums[kStreams][kTokens], weight_sums[kStreams];
  const std::byte* tiles[kStreams];
  unroll<kStreams>([&](auto s) {
    tiles[s] =
        w.blocks[first + s < w.count ? first + s
                                     : first];  // a missing stream repeats the first one, from cache, and is ignored
    weight_sums[s] = splat_i32(0);
    unroll<kTokens>([&](auto t) { sums[s][t] = splat_i32(0); });
  });
  const int64_t group_size = kGroup == 0 ? w.group_size : kGroup, bytes = tile_bytes(kBits, group_size);
  for (int64_t g = 0; g < w.groups; ++g) {
    unroll<kStreams>([&](auto s) {
      fetch_tile<kStreams, kBits, kGroup>(tiles[s], bytes);
      add_tile<kBits, kTokens>(tiles[s], group_size, x, g, zeros, sums[s], weight_sums[s]);
      tiles[s] += bytes;
    });
  }
  unroll<kStreams>([&](auto s) {
    if (first + s >= w.count) return;
    const F32x16 scale = load_f32(w.row_scales(first + s));
    unroll<kTokens>([&](auto t) {
      store_f32(y + t * stride + 16 * (first + s), finish_sums(x, t, sums[s][t], weight_sums[s], scale));
    });
  });
}

template <int kStreams, int kBits, int kTokens, int kGroup>
void stream_all(const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  const bool zeros = has_zeros(x);
  for (int first = 0; first < w.count; first += kStreams) {
    if constexpr (kIsSmall)  // one loop for activations with zeros and without, which asks for each chunk
      stream_few<kStreams, kBits, kTokens, kGroup>(w, first, x, zeros, y, stride);
    else if (zeros)
      stream_few<kStreams, kBits, kTokens, kGroup>(w, first, x, std::true_type(), y, stride);
    else
      stream_few<kStreams, kBits, kTokens, kGroup>(w, first, x, std::false_type(), y, stride);
  }
}

template <int kStreams>
void multiply_one(const TileBlocks& w, const CodeBlock* x, int64_t, float* y, int64_t stride, std::byte*) {
  with_bits(w.bits, [&](auto bits) { stream_all<kStreams, bits, 1, 0>(w, *x, y, stride); });
}

// kLong: groups of several chunks, between which the totals are kept.
template <int kBits, bool kLong>
MOTE_INLINE void add_tile_to(const std::byte* tile, const TileBlocks& w, const CodeBlock& x, int64_t group, float* y,
                             int64_t stride, bool zeros, int32_t* weight_sums) {
  const int64_t group_size = kLong ? w.group_size : kChunk, chunks = kLong ? group_size / kChunk : 1;
  const I32x16 multipliers = load_multipliers<kBits>(tile, group_size);
  int32_t kept[kLong ? kTokenBlock : 1][16];
  I32x16 codes_alone = splat_i32(0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Bytes64 quads[kQuads];
    unpack<kBits>(tile, group_size, chunk, quads);
    if (zeros) unroll<kQuads>([&](auto j) { codes_alone = dot4<kBits == 8>(codes_alone, quads[j], kOnes); });
    for_each_run(x.count, 0, [&](int first, auto rows) MOTE_INLINE_LAMBDA {
      const int8_t* codes = x.codes + first * w.columns() + (group * group_size + chunk * kChunk) * rows;
      const int32_t* offsets = x.offsets + first * w.groups + group * rows;
      I32x16 totals[rows];
      unroll<rows>([&](auto t) {
        totals[t] = kLong && chunk > 0 ? load_i32(kept[first + t]) : first_sums<kIsSigned<kBits>>(offsets + t);
      });
      add_chunk_products<kBits, rows>(quads, codes, totals);
      unroll<rows>([&](auto t) {
        float* sums = y + (first + t) * stride;
        if (kLong && chunk + 1 < chunks)
          store_i32(kept[first + t], totals[t]);
        else
          store_i32(sums, load_i32(sums) + multipliers * totals[t]);
      });
    });
  }
  if (zeros)
    store_i32(weight_sums,
              load_i32(weight_sums) + multipliers * code_sums<kBits, kIsSigned<kBits>>(codes_alone, group_size));
}

// For more tokens than registers hold sums of: what each group adds goes to y, which the first cache keeps. Always with
// up to four streams side by side: additions to the sums of a single one would wait for each other.
template <int kBits, bool kLong>
void stream_some(const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  int32_t weight_sums[kMaxStreams][16] = {};
  const bool zeros = has_zeros(x);
  start_rows(x, w.count, 0, y, stride);
  const int64_t bytes = tile_bytes(kBits, w.group_size);
  for (int64_t g = 0; g < w.groups; ++g) {
    for (int s = 0; s < w.count; ++s) {
      const std::byte* tile = w.blocks[s] + g * bytes;
      fetch_tile<kMaxStreams, kBits, kLong ? 0 : kChunk>(tile, bytes);
      add_tile_to<kBits, kLong>(tile, w, x, g, y + 16 * s, stride, zeros, weight_sums[s]);
    }
  }
  finish_rows(w, x, [&](int s) { return weight_sums[s]; }, y, stride);
}

template <int kStreams, int kBits>
void multiply_block(const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  if (w.group_size != kChunk) {
    return x.count == 1 ? stream_all<kStreams, kBits, 1, 0>(w, x, y, stride)
                        : stream_some<kBits, true>(w, x, y, stride);
  }
  switch (x.count) {
    case 1: return stream_all<kStreams, kBits, 1, kChunk>(w, x, y, stride);
    case 2: return stream_all<kStreams, kBits, 2, kChunk>(w, x, y, stride);
    case 3: return stream_all<kStreams, kBits, 3, kChunk>(w, x, y, stride);
    case kRegisterTokens: return stream_all<kStreams, kBits, kRegisterTokens, kChunk>(w, x, y, stride);
    default: return stream_some<kBits, false>(w, x, y, stride);
  }
}

// The formats that models are stored in; what the others would gain is not worth their code.
constexpr bool is_common(int bits) { return bits == 4 || bits == 8; }

template <int kStreams>
void multiply_some(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte*) {
  for (int64_t b = 0; b < num_blocks; y += x[b].count * stride, ++b) {
    with_bits(w.bits, [&](auto bits) {
      if constexpr (is_common(bits)) multiply_block<kStreams, bits>(w, x[b], y, stride);
    });
  }
}

size_t no_scratch(int64_t) { return 0; }

template <int kStreams>
constexpr CodeProducts kOne = {CodeLayout::kQuads, no_scratch, multiply_one<kStreams>};
template <int kStreams>
constexpr CodeProducts kSome = {CodeLayout::kQuads, no_scratch, multiply_some<kStreams>};

[[maybe_unused]] bool takes_common_tiles(const WeightKind& kind) { return takes_tiles(kind) && is_common(kind.bits); }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_stream_1_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds,
                     .rank = kRank + 2, .max_tokens = 1, .takes = takes_tiles,
                     .functions = &kOne<(kOneVariant ? 1 : kMaxStreams)>);
#if defined(MOTE_HAS_PRODUCTS)
MOTE_REGISTER_KERNEL(.name = "codes_stream_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds,
                     .rank = kRank + 3, .max_tokens = kTokenBlock, .takes = takes_common_tiles,
                     .functions = &kSome<kMaxStreams>);
MOTE_REGISTER_KERNEL(.name = "codes_one_stream_1_" MOTE_ISA_NAME, .role = CodeProducts::kRole,
                     .needs = kNeeds | CpuFeature::kOneStream, .rank = kRank + 4, .max_tokens = 1, .takes = takes_tiles,
                     .functions = &kOne<1>);
MOTE_REGISTER_KERNEL(.name = "codes_one_stream_" MOTE_ISA_NAME, .role = CodeProducts::kRole,
                     .needs = kNeeds | CpuFeature::kOneStream, .rank = kRank + 5, .max_tokens = kRegisterTokens,
                     .takes = takes_common_tiles, .functions = &kSome<1>);
#endif

}  // namespace MOTE_ISA
}  // namespace mote
