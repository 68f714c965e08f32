// int8 activations x tiles of 1 to 8 bits in AMX registers: 16 weight rows x 64 columns x 16 tokens an instruction,
// whose sums stay in the registers for a whole range of columns.
#include "kernels/ops/linear/codes_registers.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kMinTokens = 10;  // for fewer, unpacking costs more than multiplying faster gains

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

class Amx {
 public:
  static constexpr int64_t kStep = columns_together(CodeLayout::kChunks);
  // Two panels and two blocks of activations then about fill the first cache.
  static constexpr int64_t kPanelColumns = 512;

  class Splitter {
   public:
    Splitter(int bits, const I32x16& multipliers) {
      const __m512i first = _mm512_set1_epi32(0xffff);
      pairs_ = _mm512_or_si512(_mm512_and_si512(multipliers.v, first), _mm512_slli_epi32(multipliers.v, 16));
      offsets_ = _mm512_mullo_epi16(pairs_, _mm512_set1_epi16(static_cast<int16_t>(code_offset(bits))));
    }
    MOTE_INLINE void operator()(const Bytes64& codes, std::byte* low, std::byte* high) const {
      const __m512i first = _mm512_set1_epi16(0x00ff), rounding = _mm512_set1_epi16(128);
      const auto product = [&](__m512i c)
                               MOTE_INLINE_LAMBDA { return _mm512_sub_epi16(_mm512_mullo_epi16(c, pairs_), offsets_); };
      const __m512i even = product(_mm512_and_si512(codes.v, first)), odd = product(_mm512_srli_epi16(codes.v, 8));
      const __m512i even_high = _mm512_srli_epi16(_mm512_add_epi16(even, rounding), 8),
                    odd_high = _mm512_add_epi16(odd, rounding);
      constexpr int kSelect = 0xCA;  // first ? second operand : third
      _mm512_storeu_si512(low, _mm512_ternarylogic_epi32(first, even, _mm512_slli_epi16(odd, 8), kSelect));
      _mm512_storeu_si512(high, _mm512_ternarylogic_epi32(first, even_high, odd_high, kSelect));
    }

   private:
    __m512i pairs_, offsets_;
  };

  ~Amx() {
    if (first_ != 0) _tile_release();
  }

  static int64_t code_pitch(int count) { return kStep * count; }

  template <int kCount>
  MOTE_INLINE void multiply(const std::byte* first_panel, const std::byte* second_panel, const int8_t* const* codes,
                            const int* counts, int64_t steps, BlockSums* sums) {
    configure(counts[0], counts[kCount - 1]);
    const std::byte* panels[kPanels] = {first_panel, second_panel};
    unroll<kCount * kPanels>([](auto i) MOTE_INLINE_LAMBDA { clear_tile<i>(); });
    for (int64_t step = 0; step < steps; ++step) {
      unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA { load_tile<kWeightTile + p>(panels[p] + 16 * kStep * step); });
      unroll<kCount>([&](auto b) MOTE_INLINE_LAMBDA {
        constexpr int kX = kActivationTile + b;
        load_tile<kX>(codes[b] + code_pitch(counts[b]) * step);
        unroll<kPanels>([&](auto p) MOTE_INLINE_LAMBDA { add_product<kPanels * b + p, kX, kWeightTile + p>(); });
      });
    }
    unroll<kCount * kPanels>([&](auto i) MOTE_INLINE_LAMBDA { store_tile<i>(sums[i / kPanels][i % kPanels]); });
  }

 private:
  // For two blocks of `first` and `second` tokens.
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

  int first_ = 0, second_ = 0;
};

constexpr CodeProducts kProducts = {CodeLayout::kChunks, RegisterProducts<Amx>::scratch_bytes,
                                    RegisterProducts<Amx>::multiply};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_tiles_" MOTE_ISA_NAME, .role = CodeProducts::kRole, .needs = kNeeds, .rank = kRank,
                     .min_tokens = kMinTokens, .takes = takes_tiles, .functions = &kProducts);

}  // namespace MOTE_ISA
}  // namespace mote
