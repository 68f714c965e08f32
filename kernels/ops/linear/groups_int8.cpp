// int8 activations in groups of 32 columns x tiles of any scales. One token: weights are unpacked in registers. More: a
// block of rows is unpacked once for all of them.
#include <cstring>

#include "kernels/ops/linear/codes.h"
#include "kernels/ops/linear/groups.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

[[maybe_unused]] MOTE_INLINE int32_t quad_at(const int8_t* codes) {
  int32_t quad;
  std::memcpy(&quad, codes, sizeof(quad));
  return quad;
}

// What add_chunk_products does, of signed codes too.
template <int kCodes, int kRows, int kCount>
MOTE_INLINE void add_products(const Bytes64* quads, const int8_t* codes, I32x16* totals) {
#if defined(MOTE_HAS_DOT4_SIGNED)
  if constexpr (is_signed(kCodes)) {
    return unroll<kCount>([&](auto j) MOTE_INLINE_LAMBDA {
      const Bytes64 sizes = magnitudes(quads[j]);
      unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
        totals[t] = dot4_signed(totals[t], quads[j], sizes, quad_at(codes + 4 * (j * kRows + t)));
      });
    });
  }
#endif
  constexpr int kBits = kCodes == kCodebook ? 8 : kCodes == kSmallCodebook ? kSmallBits : kCodes;
  add_chunk_products<kBits, kRows, kCount>(quads, codes, totals);
}

// Where the sum of a step's products begins. shift: for a small codebook, whose offset is as many bits shorter than
// kCodebookOffset, which x has for all codebooks
template <bool kSigned>
MOTE_INLINE I32x16 first_sum(const int32_t* offset, int shift) {
  const int32_t shifted = *offset >> shift;  // nothing but zeros is lost
  return kSigned ? splat_i32(0) : first_sums(&shifted);
}
constexpr int kSmallShift = 3;
static_assert(kCodebookOffset >> kSmallShift == code_offset(kSmallBits));

// Steps of 16 columns lie two to a chunk.
constexpr int steps_of(bool is_short) { return is_short ? 2 : 1; }

// sums += the products of one step, whose sum of codes is `total`.
MOTE_INLINE F32x16 add_step(const F32x16& sums, const I32x16& total, const GroupNumbers& numbers, bool has_low,
                            float scale, float low) {
  const F32x16 with_scale = fma(numbers.scale, splat(scale) * to_f32(total), sums);
  return has_low ? fma(numbers.low, splat(low), with_scale) : with_scale;
}

// Sizes of groups that products are compiled for: 16, 32 where it is worth its code, else any from 32 on.
constexpr int kAnyGroup = 0;

template <int kGroup>
MOTE_INLINE int64_t chunks_of_tile(const TileReader& reader) {
  return kGroup == kAnyGroup ? reader.tile_columns / kChunk : 1;
}

// One tile of one stream times a run of tokens. first: the tile's first chunk
template <int kGroup, int kTokens, typename Codes>
MOTE_INLINE void add_tile(Codes codes, const TileReader& reader, const std::byte* tile, const std::byte* span,
                          const GroupNumbers& shared, const GroupBlock& x, int64_t first, F32x16* sums) {
  constexpr int kSteps = steps_of(kGroup == 16), kEach = kQuads / kSteps, kCodes = kForm<Codes>;
  constexpr bool kSigned = is_signed(kCodes);
  constexpr int kShift = kCodes == kSmallCodebook ? kSmallShift : 0;
  GroupNumbers numbers[kSteps];
  unroll<kSteps>([&](auto step) MOTE_INLINE_LAMBDA { numbers[step] = reader.numbers(tile, span, shared, step); });
  for (int64_t chunk = 0; chunk < chunks_of_tile<kGroup>(reader); ++chunk) {
    const int64_t at = first + chunk;
    Bytes64 quads[kQuads];
    reader.unpack(codes, tile, chunk, quads);
    const int8_t* row = x.codes + at * kChunk * kTokens;
    unroll<kSteps>([&](auto step) MOTE_INLINE_LAMBDA {
      const int64_t index = at * kSteps + step;
      I32x16 totals[kTokens];
      unroll<kTokens>(
          [&](auto t) MOTE_INLINE_LAMBDA { totals[t] = first_sum<kSigned>(x.offsets + index * kTokens + t, kShift); });
      add_products<kCodes, kTokens, kEach>(quads + step * kEach, row + 4 * step * kEach * kTokens, totals);
      unroll<kTokens>([&](auto t) MOTE_INLINE_LAMBDA {
        sums[t] = add_step(sums[t], totals[t], numbers[step], reader.has_low, x.scales[at * kTokens + t],
                           x.lows[index * kTokens + t]);
      });
    });
  }
}

// Streams [first, first + count) of weights, side by side.
template <int kGroup, int kTokens, typename Codes>
void stream(Codes codes, const TileBlocks& w, const TileReader& reader, int first, int count, const GroupBlock& x,
            float* y, int64_t stride) {
  F32x16 sums[kMaxStreams][kTokens];
  const std::byte* spans[kMaxStreams];
  for (int s = 0; s < count; ++s) {
    unroll<kTokens>([&](auto t) MOTE_INLINE_LAMBDA { sums[s][t] = splat(0.0f); });
    spans[s] = w.blocks[first + s];
  }
  const int64_t chunks = w.columns() / kChunk, each = chunks_of_tile<kGroup>(reader);
  for (int64_t chunk = 0; chunk < chunks;) {
    GroupNumbers shared[kMaxStreams];
    for (int s = 0; s < count; ++s) shared[s] = reader.shared(spans[s]);
    for (int64_t at = reader.tiles_at; at < reader.span_bytes; at += reader.tile_bytes, chunk += each) {
      for (int s = 0; s < count; ++s) {
        const std::byte* tile = spans[s] + at;
        // A single stream is left to the hardware, which fetches it ahead faster than instructions do.
        if (count > 1) reader.fetch_tile(tile);
        add_tile<kGroup, kTokens>(codes, reader, tile, spans[s], shared[s], x, chunk, sums[s]);
      }
    }
    for (int s = 0; s < count; ++s) spans[s] += reader.span_bytes;
  }
  for (int s = 0; s < count; ++s) {
    unroll<kTokens>([&](auto t) MOTE_INLINE_LAMBDA {
      store_f32(y + t * stride + 16 * (first + s), row_scale(w, reader, first + s) * sums[s][t]);
    });
  }
}

// What others would gain with more than one token is not worth their code.
constexpr bool is_streamed(int codes) { return codes != 1 && codes != 7; }

template <int kStreams, int kTokens>
void stream_run(const TileBlocks& w, const TileReader& reader, const GroupBlock& x, float* y, int64_t stride) {
  for (int first = 0; first < w.count; first += kStreams) {
    const int count = w.count - first < kStreams ? w.count - first : kStreams;
    with_constant<FewCodes<kTokens == 1>>(reader.codes, [&](auto codes) {
      if constexpr (kTokens > 1 && std::is_empty_v<decltype(codes)> && !is_streamed(kForm<decltype(codes)>)) return;
      if (w.group_size < kChunk) return stream<16, kTokens>(codes, w, reader, first, count, x, y, stride);
      if constexpr (kTokens == 1 && !kOneVariant) {
        if (w.group_size == kChunk) return stream<32, 1>(codes, w, reader, first, count, x, y, stride);
      }
      stream<kAnyGroup, kTokens>(codes, w, reader, first, count, x, y, stride);
    });
  }
}

template <int kStreams>
void multiply_one(const TileBlocks& w, const GroupBlock* x, int64_t, float* y, int64_t stride, std::byte*) {
  stream_run<kStreams, 1>(w, TileReader(w), *x, y, stride);
}

// From column `column` on, the run of `rows` that begins with row `first` of a block.
GroupBlock run_of(const GroupBlock& x, int first, int rows, const TileBlocks& w, int64_t column) {
  const auto skipped = [&](int64_t each) { return w.columns() / each * first + column / each * rows; };
  const int64_t steps = skipped(step_columns(w.group_size));
  return {x.codes + skipped(1), x.offsets + steps, x.lows + steps, x.scales + skipped(kInputGroup), rows};
}

// Columns that are multiplied before the next are unpacked. A multiple of every span.
constexpr int64_t kPanelColumns = 512;
constexpr int64_t kPanelSteps = kPanelColumns / 16;

// 16 rows of a range, unpacked.
struct Panel {
  std::byte quads[16 * kPanelColumns];  // [columns / 4][64]
  float scales[16 * kPanelSteps];       // [steps][16]
  float lows[16 * kPanelSteps];
};

size_t scratch_bytes(int64_t) { return kMaxStreams * sizeof(Panel); }

template <typename Codes>
MOTE_INLINE void unpack(Codes codes, const TileReader& reader, const std::byte* block, int64_t step, int64_t first,
                        int64_t last, Panel& panel) {
  const int64_t steps = kChunk / step;
  reader.for_each_tile(
      block, first, last, [&](const std::byte* tile, const std::byte* span, int64_t column) MOTE_INLINE_LAMBDA {
        for (int64_t chunk = 0; chunk < reader.tile_columns / kChunk; ++chunk) {
          const int64_t at = (column - first) / kChunk + chunk;
          Bytes64 quads[kQuads];
          reader.unpack(codes, tile, chunk, quads);
          unroll<kQuads>([&](auto j)
                             MOTE_INLINE_LAMBDA { store_bytes(panel.quads + 64 * (kQuads * at + j), quads[j]); });
          for (int64_t s = 0; s < steps; ++s) {
            const GroupNumbers numbers = reader.numbers(tile, span, reader.shared(span), s);
            store_f32(panel.scales + 16 * (steps * at + s), numbers.scale);
            store_f32(panel.lows + 16 * (steps * at + s), numbers.low);
          }
        }
      });
}

struct Part {
  int64_t first, last;  // columns
  bool has_low, is_first;
  int offset_shift;  // see first_sum
};

// Adds the products of kCount quads of each panel to totals, an activation broadcast once for all of them.
template <int kCodes, int kPanels, int kRows, int kCount>
MOTE_INLINE void add_step_products(const std::byte* quads, const int8_t* codes, I32x16 (*totals)[kRows]) {
#if defined(MOTE_HAS_DOT_LANES)
  if constexpr (kPanels == 1) return add_panel_lanes<kRows, kCount>(quads, codes, totals[0]);
#endif
  if constexpr (kPanels == 1) {
    Bytes64 loaded[kCount];
    unroll<kCount>([&](auto j) MOTE_INLINE_LAMBDA { loaded[j] = load_bytes(quads + 64 * j); });
    add_products<kCodes, kRows, kCount>(loaded, codes, totals[0]);
  } else {
    unroll<kCount>([&](auto j) MOTE_INLINE_LAMBDA {
      Bytes64 weights[kPanels];
      unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA { weights[p] = load_bytes(quads + p * sizeof(Panel) + 64 * j); });
      unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
        const int32_t quad = quad_at(codes + 4 * (j * kRows + t));
        unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA { totals[p][t] = dot4<false>(totals[p][t], weights[p], quad); });
      });
    });
  }
}

// Adds kPanels panels times a run of kRows tokens to y, where the sums of a range begin and end. kCodes: the most bits
// that codes have, or 8 for those of a codebook
template <int kCodes, bool kShort, int kPanels, int kRows>
void add_run(const Panel* panels, const Part& part, const GroupBlock& x, float* y, int64_t stride) {
  constexpr int kSteps = steps_of(kShort), kEach = kQuads / kSteps;
  F32x16 sums[kPanels][kRows];
  unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA {
    unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
      sums[p][t] = part.is_first ? splat(0.0f) : load_f32(y + t * stride + 16 * p);
    });
  });
  const int64_t chunks = (part.last - part.first) / kChunk;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int step = 0; step < kSteps; ++step) {
      const int64_t index = chunk * kSteps + step;
      const int8_t* codes = x.codes + kRows * (kChunk * chunk + 4 * kEach * step);
      const std::byte* quads = panels->quads + 64 * (kQuads * chunk + kEach * step);
      I32x16 totals[kPanels][kRows];
      unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA {
        unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
          totals[p][t] = first_sum<is_signed(kCodes)>(x.offsets + kRows * index + t, part.offset_shift);
        });
      });
      add_step_products<kCodes, kPanels, kRows, kEach>(quads, codes, totals);
      unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA {
        const GroupNumbers numbers = {load_f32(panels[p].scales + 16 * index), load_f32(panels[p].lows + 16 * index)};
        unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA {
          sums[p][t] = add_step(sums[p][t], totals[p][t], numbers, part.has_low, x.scales[kRows * chunk + t],
                                x.lows[kRows * index + t]);
        });
      });
    }
  }
  unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA {
    unroll<kRows>([&](auto t) MOTE_INLINE_LAMBDA { store_f32(y + t * stride + 16 * p, sums[p][t]); });
  });
}

template <int kCodes, bool kShort>
void add_block(const Panel* panels, const TileBlocks& w, const Part& part, const GroupBlock& x, float* y,
               int64_t stride) {
  for_each_run(x.count, 0, [&](int first, auto rows) {
    const GroupBlock run = run_of(x, first, rows, w, part.first);
    float* to = y + first * stride;
    int p = 0;
    if constexpr (kPanelsAtOnce > 1) {
      for (; p + kPanelsAtOnce <= w.count; p += kPanelsAtOnce) {
        add_run<kCodes, kShort, kPanelsAtOnce, rows>(panels + p, part, run, to + 16 * p, stride);
      }
    }
    for (; p < w.count; ++p) add_run<kCodes, kShort, 1, rows>(panels + p, part, run, to + 16 * p, stride);
  });
}

void multiply_part(const Panel* panels, const TileBlocks& w, const Part& part, const GroupBlock& x, float* y,
                   int64_t stride) {
  const int most = has_small_codebook(w) ? kSmallBits : w.scales.codebook != nullptr ? 8 : w.bits;
  with_most_bits(most, [&](auto bits) {
    if (w.group_size < kChunk)
      add_block<bits, true>(panels, w, part, x, y, stride);
    else
      add_block<bits, false>(panels, w, part, x, y, stride);
  });
}

void multiply(const TileBlocks& w, const GroupBlock* x, int64_t num_blocks, float* y, int64_t stride,
              std::byte* scratch) {
  Panel* panels = reinterpret_cast<Panel*>(scratch);
  const TileReader reader(w);
  const int64_t columns = w.columns(), step = step_columns(w.group_size);
  for (int64_t first = 0; first < columns; first += kPanelColumns) {
    const int64_t last = first + kPanelColumns < columns ? first + kPanelColumns : columns;
    with_constant<FewCodes<false>>(reader.codes, [&](auto codes) {
      for (int s = 0; s < w.count; ++s) unpack(codes, reader, w.blocks[s], step, first, last, panels[s]);
    });
    const Part part = {first, last, reader.has_low, first == 0, has_small_codebook(w) ? kSmallShift : 0};
    float* rows = y;
    for (int64_t b = 0; b < num_blocks; rows += x[b].count * stride, ++b) {
      multiply_part(panels, w, part, x[b], rows, stride);
      if (last < columns || !w.scales.of_rows) continue;
      for (int t = 0; t < x[b].count; ++t) {
        for (int s = 0; s < w.count; ++s) {
          float* to = rows + t * stride + 16 * s;
          store_f32(to, row_scale(w, reader, s) * load_f32(to));
        }
      }
    }
  }
}

size_t no_scratch(int64_t) { return 0; }

constexpr GroupProducts kPanels = {scratch_bytes, multiply};
template <int kStreams>
constexpr GroupProducts kOne = {no_scratch, multiply_one<kStreams>};

bool takes_all_tiles(const WeightKind& kind) { return has_products_of(kind.bits); }
#if defined(MOTE_HAS_PRODUCTS)
// What unpacking costs is more than what further passes over weights in the second cache do.
void multiply_few(const TileBlocks& w, const GroupBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte*) {
  const TileReader reader(w);
  for (int64_t b = 0; b < num_blocks; y += x[b].count * stride, ++b) {
    for_each_run(x[b].count, 0, [&](int first, auto rows) {
      const GroupBlock run = run_of(x[b], first, rows, w, 0);
      stream_run<kMaxStreams, rows>(w, reader, run, y + first * stride, stride);
    });
  }
}

constexpr GroupProducts kFew = {no_scratch, multiply_few};

bool takes_streamed_tiles(const WeightKind& kind) { return takes_all_tiles(kind) && is_streamed(kind.bits); }
#endif

}  // namespace

MOTE_REGISTER_KERNEL(.name = "groups_panels_" MOTE_ISA_NAME, .role = GroupProducts::kRole, .needs = kNeeds,
                     .rank = kRank, .takes = takes_all_tiles, .functions = &kPanels);
MOTE_REGISTER_KERNEL(.name = "groups_stream_1_" MOTE_ISA_NAME, .role = GroupProducts::kRole, .needs = kNeeds,
                     .rank = kRank + 1, .max_tokens = 1, .takes = takes_all_tiles, .functions = &kOne<kMaxStreams>);
#if defined(MOTE_HAS_PRODUCTS)
MOTE_REGISTER_KERNEL(.name = "groups_stream_" MOTE_ISA_NAME, .role = GroupProducts::kRole, .needs = kNeeds,
                     .rank = kRank + 2, .max_tokens = 2 * kRun, .takes = takes_streamed_tiles, .functions = &kFew);
MOTE_REGISTER_KERNEL(.name = "groups_one_stream_1_" MOTE_ISA_NAME, .role = GroupProducts::kRole,
                     .needs = kNeeds | CpuFeature::kOneStream, .rank = kRank + 3, .max_tokens = 1,
                     .takes = takes_all_tiles, .functions = &kOne<1>);
#endif

}  // namespace MOTE_ISA
}  // namespace mote
