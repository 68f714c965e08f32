// int8 activations x tiles of 1 to 8 bits for few tokens: weights are unpacked in registers, once for all tokens. Up to
// four streams of them are read side by side, or one after the other: CPUs differ in what their memory answers faster.
#include "kernels/ops/linear/codes.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

// Where dot4 takes signed bytes, codes of less than 8 bits are such bytes as they are: nothing need be subtracted.
template <typename Bits> inline constexpr bool kIsSigned = kCodesAreSigned && kMostBits<Bits> == 8;

template <typename Bits>
MOTE_INLINE void unpack(Bits bits, const std::byte* tile, int64_t group_size, int64_t chunk, Bytes64* quads) {
  if constexpr (kMostBits<Bits> == 8)
    unpack_width(bits, tile, group_size, chunk, quads);
  else
    unpack_digits<kMostBits<Bits>>(tile, group_size, chunk, quads);
}

// How weights are read: in how many streams, and how many bytes ahead of a tile are fetched, 0: none.
struct Reading {
  int streams;
  int64_t ahead;
};
constexpr Reading kSideBySide = {kMaxStreams, kFetchAhead};
// One stream, which instructions fetch ahead or the hardware alone: faster on some CPUs, but not where a tile takes
// AVX2 so many instructions that the hardware starts late in each page.
constexpr Reading kFetched = {1, 6144};
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr Reading kOneByOne = kFetched;
#else
constexpr Reading kOneByOne = {1, 0};
#endif

// kBytes: that many, 0: `bytes`.
template <int64_t kAhead, int64_t kBytes>
MOTE_INLINE void fetch_tile(const std::byte* tile, int64_t bytes) {
  if constexpr (kAhead == 0) return;
  tile += kAhead;
  if constexpr (kBytes == 0) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + i);
  } else {
    // Inlined, or else the compiler leaves out calls that only fetch.
    unroll<static_cast<int>((kBytes + 63) / 64)>([&](auto i) MOTE_INLINE_LAMBDA { __builtin_prefetch(tile + 64 * i); });
  }
}

// Whether the sums of weights alone are wanted.
bool has_zeros(const CodeBlock& x) {
  bool found = false;
  for (int t = 0; t < x.count; ++t) found = found || x.zeros[t] != 0;
  return found;
}

// One group of one stream: adds to sums[t], and to weight_sums if zeros.
template <int kTokens, typename Bits>
MOTE_INLINE void add_tile(Bits bits, const std::byte* tile, int64_t group_size, const CodeBlock& x, int64_t group,
                          bool zeros, I32x16* sums, I32x16& weight_sums) {
  I32x16 totals[kTokens], codes_alone = splat_i32(0);
  for (int t = 0; t < kTokens; ++t) totals[t] = first_sums<kIsSigned<Bits>>(x.offsets + group * kTokens + t);
  const int8_t* row = x.codes + group * group_size * kTokens;
  for (int64_t chunk = 0; chunk < group_size / kChunk; ++chunk, row += kChunk * kTokens) {
    Bytes64 quads[kQuads];
    unpack(bits, tile, group_size, chunk, quads);
    if (zeros) unroll<kQuads>([&](auto j) { codes_alone = dot4<kMostBits<Bits> == 8>(codes_alone, quads[j], kOnes); });
    add_chunk_products<kMostBits<Bits>, kTokens>(quads, row, totals);
  }
  const I32x16 multipliers = load_multipliers(bits, tile, group_size);
  if (zeros) weight_sums = weight_sums + multipliers * code_sums<kIsSigned<Bits>>(bits, codes_alone, group_size);
  for (int t = 0; t < kTokens; ++t) sums[t] = sums[t] + multipliers * totals[t];
}

// function(stream) for each, a constant unless kLoop.
template <int kStreams, bool kLoop, typename Function>
MOTE_INLINE void for_each_stream(const Function& function) {
  if constexpr (!kLoop) return unroll<kStreams>(function);
  for (int s = 0; s < kStreams; ++s) function(s);
}

// Blocks [first, first + streams) of weights. Every index of a sum is a constant, so that sums stay in registers; not
// in builds for size where these are too few, or the width has no code of its own.
// kGroup: 32, the size that models are stored in and that is short enough to be unrolled, or 0 for any.
template <Reading kReading, int kTokens, int kGroup, typename Bits, typename Zeros>
void stream_few(Bits bits, const TileBlocks& w, int first, const CodeBlock& x, Zeros zeros, float* y, int64_t stride) {
  constexpr int kStreams = kReading.streams;
  constexpr bool kLoop = kIsSmall && (kTokens > 1 || std::is_same_v<Bits, int>);
  constexpr int64_t kBytes = kGroup == 0 ? 0 : tile_bytes(kMostBits<Bits>, kGroup);
  I32x16 sums[kStreams][kTokens], weight_sums[kStreams];
  const std::byte* tiles[kStreams];
  for_each_stream<kStreams, kLoop>([&](auto s) {
    tiles[s] =
        w.blocks[first + s < w.count ? first + s
                                     : first];  // a missing stream repeats the first one, from cache, and is ignored
    weight_sums[s] = splat_i32(0);
    unroll<kTokens>([&](auto t) { sums[s][t] = splat_i32(0); });
  });
  const int64_t group_size = kGroup == 0 ? w.group_size : kGroup, bytes = tile_bytes(bits, group_size);
  for (int64_t g = 0; g < w.groups; ++g) {
    for_each_stream<kStreams, kLoop>([&](auto s) MOTE_INLINE_LAMBDA {
      fetch_tile<kReading.ahead, kBytes>(tiles[s], bytes);
      add_tile<kTokens>(bits, tiles[s], group_size, x, g, zeros, sums[s], weight_sums[s]);
      tiles[s] += bytes;
    });
  }
  for_each_stream<kStreams, kLoop>([&](auto s) {
    if (first + s >= w.count) return;
    const F32x16 scale = load_f32(w.row_scales(first + s));
    unroll<kTokens>([&](auto t) {
      store_f32(y + t * stride + 16 * (first + s), finish_sums(x, t, sums[s][t], weight_sums[s], scale));
    });
  });
}

template <Reading kReading, int kTokens, int kGroup, typename Bits>
void stream_all(Bits bits, const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  const bool zeros = has_zeros(x);
  for (int first = 0; first < w.count; first += kReading.streams) {
    if constexpr (kIsSmall)  // one loop for activations with zeros and without, which asks for each chunk
      stream_few<kReading, kTokens, kGroup>(bits, w, first, x, zeros, y, stride);
    else if (zeros)
      stream_few<kReading, kTokens, kGroup>(bits, w, first, x, std::true_type(), y, stride);
    else
      stream_few<kReading, kTokens, kGroup>(bits, w, first, x, std::false_type(), y, stride);
  }
}

template <Reading kReading>
void multiply_one(const TileBlocks& w, const CodeBlock* x, int64_t, float* y, int64_t stride, std::byte*) {
  with_constant<FewWidths>(w.bits, [&](auto bits) { stream_all<kReading, 1, 0>(bits, w, *x, y, stride); });
}

// kLong: groups of several chunks, between which the totals are kept; or of one, in builds for size.
template <bool kLong, typename Bits>
MOTE_INLINE void add_tile_to(Bits bits, const std::byte* tile, const TileBlocks& w, const CodeBlock& x, int64_t group,
                             float* y, int64_t stride, bool zeros, int32_t* weight_sums) {
  const int64_t group_size = kLong ? w.group_size : kChunk, chunks = kLong ? group_size / kChunk : 1;
  const I32x16 multipliers = load_multipliers(bits, tile, group_size);
  int32_t kept[kLong ? kTokenBlock : 1][16];
  I32x16 codes_alone = splat_i32(0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Bytes64 quads[kQuads];
    unpack(bits, tile, group_size, chunk, quads);
    if (zeros) unroll<kQuads>([&](auto j) { codes_alone = dot4<kMostBits<Bits> == 8>(codes_alone, quads[j], kOnes); });
    for_each_run(x.count, 0, [&](int first, auto rows) MOTE_INLINE_LAMBDA {
      const int8_t* codes = x.codes + first * w.columns() + (group * group_size + chunk * kChunk) * rows;
      const int32_t* offsets = x.offsets + first * w.groups + group * rows;
      I32x16 totals[rows];
      unroll<rows>([&](auto t) {
        totals[t] = kLong && chunk > 0 ? load_i32(kept[first + t]) : first_sums<kIsSigned<Bits>>(offsets + t);
      });
      add_chunk_products<kMostBits<Bits>, rows>(quads, codes, totals);
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
              load_i32(weight_sums) + multipliers * code_sums<kIsSigned<Bits>>(bits, codes_alone, group_size));
}

// For more tokens than registers hold sums of: what each group adds goes to y, which the first cache keeps. Always with
// up to four streams side by side: additions to the sums of a single one would wait for each other.
template <bool kLong, typename Bits>
void stream_some(Bits bits, const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  int32_t weight_sums[kMaxStreams][16] = {};
  const bool zeros = has_zeros(x);
  start_rows(x, w.count, 0, y, stride);
  const int64_t bytes = tile_bytes(bits, w.group_size);
  for (int64_t g = 0; g < w.groups; ++g) {
    for (int s = 0; s < w.count; ++s) {
      const std::byte* tile = w.blocks[s] + g * bytes;
      fetch_tile<kFetchAhead, kLong ? 0 : tile_bytes(kMostBits<Bits>, kChunk)>(tile, bytes);
      add_tile_to<kLong>(bits, tile, w, x, g, y + 16 * s, stride, zeros, weight_sums[s]);
    }
  }
  finish_rows(w, x, [&](int s) { return weight_sums[s]; }, y, stride);
}

template <Reading kReading, typename Bits>
void multiply_block(Bits bits, const TileBlocks& w, const CodeBlock& x, float* y, int64_t stride) {
  if (w.group_size != kChunk) {
    return x.count == 1 ? stream_all<kReading, 1, 0>(bits, w, x, y, stride) : stream_some<true>(bits, w, x, y, stride);
  }
  switch (x.count) {
    case 1: return stream_all<kReading, 1, kChunk>(bits, w, x, y, stride);
    case 2: return stream_all<kReading, 2, kChunk>(bits, w, x, y, stride);
    case 3: return stream_all<kReading, 3, kChunk>(bits, w, x, y, stride);
    case kRegisterTokens: return stream_all<kReading, kRegisterTokens, kChunk>(bits, w, x, y, stride);
    default: return stream_some<kIsSmall>(bits, w, x, y, stride);
  }
}

template <Reading kReading>
void multiply_some(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte*) {
  for (int64_t b = 0; b < num_blocks; y += x[b].count * stride, ++b) {
    with_constant<AllWidths>(w.bits, [&](auto bits) {
      if constexpr (is_common(bits)) multiply_block<kReading>(bits, w, x[b], y, stride);
    });
  }
}

size_t no_scratch(int64_t) { return 0; }

template <Reading kReading>
constexpr CodeProducts kOne = {CodeLayout::kQuads, no_scratch, multiply_one<kReading>};
template <Reading kReading>
constexpr CodeProducts kSome = {CodeLayout::kQuads, no_scratch, multiply_some<kReading>};

[[maybe_unused]] bool takes_common_tiles(const WeightKind& kind) { return takes_tiles(kind) && is_common(kind.bits); }

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_stream_1_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds,
                     .rank = kRank + 2, .max_tokens = 1, .takes = takes_tiles,
                     .functions = &kOne<(kOneVariant ? kOneByOne : kSideBySide)>);
#if defined(MOTE_HAS_PRODUCTS)
MOTE_REGISTER_KERNEL(.name = "codes_stream_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds,
                     .rank = kRank + 3, .max_tokens = kTokenBlock, .takes = takes_common_tiles,
                     .functions = &kSome<kSideBySide>);
MOTE_REGISTER_KERNEL(.name = "codes_one_stream_1_" MOTE_ISA_NAME, .role = CodeProducts::kRole,
                     .needs = kNeeds | CpuFeature::kOneStream, .rank = kRank + 4, .max_tokens = 1, .takes = takes_tiles,
                     .functions = &kOne<kOneByOne>);
MOTE_REGISTER_KERNEL(.name = "codes_one_stream_" MOTE_ISA_NAME, .role = CodeProducts::kRole,
                     .needs = kNeeds | CpuFeature::kOneStream, .rank = kRank + 5, .max_tokens = kRegisterTokens,
                     .takes = takes_common_tiles, .functions = &kSome<kOneByOne>);
#endif
#if defined(MOTE_HAS_PRODUCTS) && defined(__AVX512F__)
constexpr CpuFeatures kNeedsFetched = kNeeds | CpuFeature::kOneStream | CpuFeature::kFetchedStream;
MOTE_REGISTER_KERNEL(.name = "codes_fetched_stream_1_" MOTE_ISA_NAME, .role = CodeProducts::kRole,
                     .needs = kNeedsFetched, .rank = kRank + 6, .max_tokens = 1, .takes = takes_tiles,
                     .functions = &kOne<kFetched>);
MOTE_REGISTER_KERNEL(.name = "codes_fetched_stream_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeedsFetched,
                     .rank = kRank + 7, .max_tokens = kRegisterTokens, .takes = takes_common_tiles,
                     .functions = &kSome<kFetched>);
#endif

}  // namespace MOTE_ISA
}  // namespace mote
