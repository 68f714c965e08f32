// int8 activations x tiles of 1 to 8 bits in AMX registers: 16 weight rows x 64 columns x 16 tokens an instruction,
// whose sums stay in the registers for a whole range of columns.
#include <cstring>

#include "kernels/ops/linear/codes.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kMinTokens = 10;  // for fewer, unpacking costs more than multiplying faster gains
constexpr int64_t kStep = static_cast<int64_t>(CodeLayout::kChunks);  // columns an instruction
// Columns that are multiplied before the next are unpacked: two panels and two blocks of activations then about fill
// the first cache.
constexpr int64_t kPanelColumns = 512;
constexpr int kBlocks = 2;  // blocks of tokens for which a panel is loaded once
constexpr int kPanels = 2;  // panels for which a block of activations is loaded once

// Signed bytes of 16 rows of a range, [columns / 4][16 rows][4].
using BytePanel = std::byte[16 * kPanelColumns];

struct Scratch {
  BytePanel panels[2 * kMaxStreams];
  int32_t weight_sums[kMaxStreams][16];  // over all ranges
  int32_t sums[kBlocks][kPanels][kTokenBlock][16];
};

size_t scratch_bytes(int64_t) { return sizeof(Scratch); }

// multiplier * code where it takes two bytes: 256 * high + low, both signed.
struct Digits {
  __m512i low, high;
};
MOTE_INLINE Digits split_products(__m512i codes, __m512i multipliers, __m512i offsets) {
  const __m512i first = _mm512_set1_epi16(0x00ff), rounding = _mm512_set1_epi16(128);
  const auto product = [&](__m512i c)
                           MOTE_INLINE_LAMBDA { return _mm512_sub_epi16(_mm512_mullo_epi16(c, multipliers), offsets); };
  const __m512i even = product(_mm512_and_si512(codes, first)), odd = product(_mm512_srli_epi16(codes, 8));
  const __m512i even_high = _mm512_srli_epi16(_mm512_add_epi16(even, rounding), 8),
                odd_high = _mm512_add_epi16(odd, rounding);
  constexpr int kSelect = 0xCA;  // first ? second operand : third
  return {_mm512_ternarylogic_epi32(first, even, _mm512_slli_epi16(odd, 8), kSelect),
          _mm512_ternarylogic_epi32(first, even_high, odd_high, kSelect)};
}

template <int kBits>
void unpack_to(const std::byte* tile, int64_t group_size, std::byte* low, std::byte* high, int32_t* weight_sums) {
  const I32x16 multipliers = load_multipliers<kBits>(tile, group_size);
  const __m512i first = _mm512_set1_epi32(0xffff);
  const __m512i pairs = _mm512_or_si512(_mm512_and_si512(multipliers.v, first), _mm512_slli_epi32(multipliers.v, 16));
  const __m512i offsets = _mm512_mullo_epi16(pairs, _mm512_set1_epi16(code_offset(kBits)));
  const ByteProducts<kBits> products(multipliers);
  unpack_tile<kBits>(tile, group_size, multipliers, weight_sums,
                     [&](int64_t j, const Bytes64& codes) MOTE_INLINE_LAMBDA {
                       if constexpr (products_fit_bytes(kBits)) {
                         store_bytes(low + 64 * j, subtract(products(codes), kProductOffset));
                       } else {
                         const Digits digits = split_products(codes.v, pairs, offsets);
                         _mm512_storeu_si512(low + 64 * j, digits.low);
                         _mm512_storeu_si512(high + 64 * j, digits.high);
                       }
                     });
}

// Panels that a block of rows takes: two where products take two bytes.
int panels_per_block(const TileBlocks& w) { return products_fit_bytes(w.bits) ? 1 : 2; }

void unpack(const TileBlocks& w, const Range& range, Scratch& scratch) {
  with_bits(w.bits, [&](auto bits) {
    for_each_tile(w, range, bits, [&](int s, int64_t group, const std::byte* tile) {
      constexpr int kEach = products_fit_bytes(bits) ? 1 : 2;
      const int64_t at = group * 16 * w.group_size;
      std::byte* low = scratch.panels[kEach * s] + at;
      std::byte* high = scratch.panels[kEach * s + kEach - 1] + at;
      unpack_to<bits>(tile, w.group_size, low, high, scratch.weight_sums[s]);
    });
  });
  const int64_t columns = range.groups * w.group_size, missing = (kStep - columns % kStep) % kStep;
  for (int p = 0; p < w.count * panels_per_block(w); ++p) {
    std::memset(scratch.panels[p] + 16 * columns, 0, static_cast<size_t>(16 * missing));
  }
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

// Registers 0 to 3: sums [tokens][16 rows] of each block and panel; 4 and 5: activations [tokens][64] of each block; 6
// and 7: a panel's weights [16 quads][16 rows][4].
constexpr int kActivationTile = kBlocks * kPanels, kWeightTile = kActivationTile + kBlocks,
              kTiles = kWeightTile + kPanels;

// The tile registers, configured for two blocks of `first` and `second` tokens.
class Registers {
 public:
  ~Registers() {
    if (first_ != 0) _tile_release();
  }
  void configure(int first, int second) {
    if (first == first_ && second == second_) return;
    first_ = first;
    second_ = second;
    TileConfig config;
    for (int i = 0; i < kTiles; ++i) {
      const int block = i < kActivationTile ? i / kPanels : i - kActivationTile;
      config.rows[i] = static_cast<uint8_t>(i >= kWeightTile ? 16 : block == 0 ? first : second);
      config.bytes_per_row[i] = 64;
    }
    _tile_loadconfig(&config);
  }

 private:
  int first_ = 0, second_ = 0;
};

// Intrinsics whose registers are template arguments: those of compilers take only literals.
template <int kTile>
MOTE_INLINE void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
MOTE_INLINE void load_tile(const void* from) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(int64_t{64}) : "memory");
}
template <int kTile>
MOTE_INLINE void store_tile(void* to) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(int64_t{64}) : "memory");
}
template <int kTile, int kX, int kWeight>
MOTE_INLINE void add_product() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kTile), "i"(kX), "i"(kWeight));
}

// Two panels times kCount blocks of activations.
template <int kCount>
MOTE_INLINE void multiply_panels(const BytePanel* panels, const int8_t* const* codes, const int64_t* pitches,
                                 int64_t steps, int32_t (*sums)[kPanels][kTokenBlock][16]) {
  unroll<kCount * kPanels>([](auto i) MOTE_INLINE_LAMBDA { clear_tile<i>(); });
  for (int64_t step = 0; step < steps; ++step) {
    unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA { load_tile<kWeightTile + p>(panels[p] + 16 * kStep * step); });
    unroll<kCount>([&](auto b) MOTE_INLINE_LAMBDA {
      constexpr int kX = kActivationTile + b;
      load_tile<kX>(codes[b] + pitches[b] * step);
      unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA { add_product<kPanels * b + p, kX, kWeightTile + p>(); });
    });
  }
  unroll<kCount * kPanels>([&](auto i) MOTE_INLINE_LAMBDA { store_tile<i>(sums[i / kPanels][i % kPanels]); });
}

// Adds total(t), the sums of a range for block s of weight rows and token t of x, to y. The last range finishes y.
template <typename Total>
MOTE_INLINE void add_sums(const TileBlocks& w, int s, const Range& range, const int32_t* weight_sums,
                          const CodeBlock& x, float* y, int64_t stride, const Total& total) {
  const I32x16 sums_of_row = load_i32(weight_sums);
  const F32x16 scale = load_f32(w.row_scales(s));
  for (int t = 0; t < x.count; ++t, y += stride) {
    I32x16 all = total(t);
    if (!range.is_first) all = all + load_i32(y);
    if (range.is_last)
      store_f32(y, finish_sums(x, t, all, sums_of_row, scale));
    else
      store_i32(y, all);
  }
}

template <int kCount>
MOTE_INLINE void multiply_blocks(const TileBlocks& w, const Range& range, const CodeBlock* x, float* y, int64_t stride,
                                 Scratch& scratch) {
  const int8_t* codes[kCount];
  int64_t pitches[kCount];
  for (int b = 0; b < kCount; ++b) {
    pitches[b] = kStep * x[b].count;
    codes[b] = x[b].codes + range.first_group * w.group_size * x[b].count;
  }
  const int64_t steps = (range.groups * w.group_size + kStep - 1) / kStep;
  const int each = panels_per_block(w), at_once = kPanels / each;
  for (int s = 0; s < w.count; s += at_once) {
    multiply_panels<kCount>(scratch.panels + each * s, codes, pitches, steps, scratch.sums);
    float* to = y + 16 * s;
    for (int b = 0; b < kCount; to += x[b].count * stride, ++b) {
      const auto& sums = scratch.sums[b];
      if (each == 2) {
        add_sums(w, s, range, scratch.weight_sums[s], x[b], to, stride,
                 [&](int t) MOTE_INLINE_LAMBDA { return load_i32(sums[0][t]) + shift_left<8>(load_i32(sums[1][t])); });
        continue;
      }
      for (int p = 0; p < kPanels && s + p < w.count; ++p) {
        add_sums(w, s + p, range, scratch.weight_sums[s + p], x[b], to + 16 * p, stride,
                 [&](int t) MOTE_INLINE_LAMBDA { return load_i32(sums[p][t]); });
      }
    }
  }
}

void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride,
              std::byte* memory) {
  Scratch& scratch = *reinterpret_cast<Scratch*>(memory);
  for (int s = 0; s < w.count; ++s) store_i32(scratch.weight_sums[s], splat_i32(0));
  Registers registers;
  for_each_range(w, kPanelColumns, [&](const Range& range) {
    unpack(w, range, scratch);
    float* rows = y;
    int64_t b = 0;
    for (; b + kBlocks <= num_blocks; b += kBlocks) {
      registers.configure(x[b].count, x[b + 1].count);
      multiply_blocks<kBlocks>(w, range, x + b, rows, stride, scratch);
      rows += (x[b].count + x[b + 1].count) * stride;
    }
    if (b == num_blocks) return;
    registers.configure(x[b].count, x[b].count);
    multiply_blocks<1>(w, range, x + b, rows, stride, scratch);
  });
}

constexpr CodeProducts kProducts = {CodeLayout::kChunks, scratch_bytes, multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_tiles_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .min_tokens = kMinTokens, .takes = takes_tiles, .functions = &kProducts);

}  // namespace MOTE_ISA
}  // namespace mote
