// KleidiAI's kernels as products with tiles of 4 bits (kernels/ops/linear/kernels.h): a row of codes at a time, or
// four.
#include <cfloat>

#include "kai/ukernels/matmul/matmul_clamp_f32_qai8dxp_qsi4c32p/kai_matmul_clamp_f32_qai8dxp1x4_qsi4c32p8x4_1x8_neon_dotprod.h"
#include "kai/ukernels/matmul/matmul_clamp_f32_qai8dxp_qsi4c32p/kai_matmul_clamp_f32_qai8dxp1x8_qsi4c32p8x8_1x8_neon_dotprod.h"
#include "kai/ukernels/matmul/matmul_clamp_f32_qai8dxp_qsi4c32p/kai_matmul_clamp_f32_qai8dxp4x4_qsi4c32p8x4_4x8_neon_dotprod.h"
#include "kai/ukernels/matmul/matmul_clamp_f32_qai8dxp_qsi4c32p/kai_matmul_clamp_f32_qai8dxp4x8_qsi4c32p8x8_4x8_neon_i8mm.h"
#include "kai/ukernels/matmul/pack/kai_rhs_pack_nxk_qsi4c32pnrx4_qsu4c32s1s0_neon.h"
#include "kai/ukernels/matmul/pack/kai_rhs_pack_nxk_qsi4c32pnrx8_qsu4c32s1s0_neon.h"
#include "kernels/kernel.h"
#include "kernels/ops/linear/kernels.h"
#include "kernels/vendor/kleidiai/packing.h"

namespace mote::kleidiai {

namespace {

#define MOTE_KLEIDIAI_KERNEL(name)   \
  {kai_get_m_step_##name,            \
   kai_get_n_step_##name,            \
   kai_get_mr_##name,                \
   kai_get_nr_##name,                \
   kai_get_kr_##name,                \
   kai_get_sr_##name,                \
   kai_get_lhs_packed_offset_##name, \
   kai_get_rhs_packed_offset_##name, \
   kai_get_dst_offset_##name,        \
   kai_get_dst_size_##name,          \
   kai_run_##name}
constexpr MicroKernel kOneDotprod = MOTE_KLEIDIAI_KERNEL(matmul_clamp_f32_qai8dxp1x4_qsi4c32p8x4_1x8_neon_dotprod);
constexpr MicroKernel kSomeDotprod = MOTE_KLEIDIAI_KERNEL(matmul_clamp_f32_qai8dxp4x4_qsi4c32p8x4_4x8_neon_dotprod);
constexpr MicroKernel kOneI8mm = MOTE_KLEIDIAI_KERNEL(matmul_clamp_f32_qai8dxp1x8_qsi4c32p8x8_1x8_neon_dotprod);
constexpr MicroKernel kSomeI8mm = MOTE_KLEIDIAI_KERNEL(matmul_clamp_f32_qai8dxp4x8_qsi4c32p8x8_4x8_neon_i8mm);
#undef MOTE_KLEIDIAI_KERNEL

template <auto& kPack>
void pack_range(const MicroKernel& kernel, int64_t columns, int64_t group_size, const uint8_t* codes,
                const uint16_t* scales, std::byte* to) {
  kai_rhs_pack_nxk_qsi4c32p_qsu4c32s1s0_params params{};
  params.lhs_zero_point = 1;  // the packing takes no other; kernels read each row's own
  params.rhs_zero_point = 8;
  params.scale_dt = kai_dt_bf16;
  const auto k = static_cast<size_t>(columns), group = static_cast<size_t>(group_size);
  kPack(1, kTileRows, k, kernel.get_nr(), kernel.get_kr(), kernel.get_sr(), group, codes, k / 2, nullptr, scales,
        k / group * sizeof(uint16_t), to, 0, &params);
}

// Sums of 16 rows of weights and a block's rows of codes, kept as integers between ranges.
struct Sums {
  uint32_t values[kTokenBlock][kTileRows] = {};

  void add(const float (*part)[kTileRows], int count) {
    for (int t = 0; t < count; ++t) {
      for (int r = 0; r < kTileRows; ++r) values[t][r] += static_cast<uint32_t>(static_cast<int32_t>(part[t][r]));
    }
  }

  void finish(const CodeBlock& x, const RowTrailer& rows, float* y, int64_t stride) const {
    for (int t = 0; t < x.count; ++t) {
      const auto zero = static_cast<uint32_t>(x.zeros[t]);
      for (int r = 0; r < kTileRows; ++r) {
        const auto sum = static_cast<int32_t>(values[t][r] - zero * rows.sums[r]);
        y[t * stride + r] = x.scales[t] * (rows.scales[r] * static_cast<float>(sum));
      }
    }
  }
};

void multiply_block(const MicroKernel& kernel, const std::byte* weights, int64_t group_size, int64_t columns,
                    const CodeBlock& x, float* y, int64_t stride) {
  Sums sums;
  float part[kTokenBlock][kTileRows];
  const int8_t* codes = x.codes;
  for_each_range(columns, [&](int64_t count) {
    kernel.run_matmul(static_cast<size_t>(x.count), kTileRows, static_cast<size_t>(count),
                      static_cast<size_t>(group_size), codes, weights, &part[0][0], sizeof(part[0]), sizeof(float),
                      -FLT_MAX, FLT_MAX);
    sums.add(part, x.count);
    codes += code_range_bytes(kernel, x.count, count);
    weights += weight_range_bytes(kernel, count, group_size);
  });
  sums.finish(x, *reinterpret_cast<const RowTrailer*>(weights), y, stride);
}

template <const MicroKernel& kKernel>
void multiply(const TileBlocks& w, const CodeBlock* x, int64_t num_blocks, float* y, int64_t stride, std::byte*) {
  for (int64_t b = 0; b < num_blocks; y += x[b].count * stride, ++b) {
    for (int s = 0; s < w.count; ++s) {
      multiply_block(kKernel, w.blocks[s], w.group_size, w.columns(), x[b], y + kTileRows * s, stride);
    }
  }
}

size_t no_scratch(int64_t) { return 0; }

template <const MicroKernel& kKernel, PackRange kPackRange>
struct Weights {
  static size_t block_bytes(int64_t group_size, int64_t groups) {
    return packed_block_bytes(kKernel, group_size, groups);
  }
  static void pack(const std::byte* tiles, int64_t group_size, int64_t groups, std::byte* to) {
    pack_block(kKernel, kPackRange, tiles, group_size, groups, to);
  }
};

template <const MicroKernel& kKernel>
void pack_row_for(const int8_t* codes, int64_t columns, int row, int rows, int8_t* to) {
  pack_row(kKernel, codes, columns, row, rows, to);
}

template <const MicroKernel& kKernel, int kRowsTogether>
constexpr CodePacking kCodes = {kRowsTogether, packed_row_bytes, pack_row_for<kKernel>};

using Weights4 = Weights<kSomeDotprod, pack_range<kai_run_rhs_pack_nxk_qsi4c32pnrx4_qsu4c32s1s0_neon>>;
using Weights8 = Weights<kSomeI8mm, pack_range<kai_run_rhs_pack_nxk_qsi4c32pnrx8_qsu4c32s1s0_neon>>;
constexpr WeightPacking kWeights4 = {"qsi4c32p8x4", Weights4::block_bytes, Weights4::pack};
constexpr WeightPacking kWeights8 = {"qsi4c32p8x8", Weights8::block_bytes, Weights8::pack};

template <const MicroKernel& kKernel, const WeightPacking& kWeights, int kRowsTogether>
constexpr CodeProducts kProducts = {CodeLayout::kQuads, no_scratch, multiply<kKernel>, &kWeights,
                                    &kCodes<kKernel, kRowsTogether>};

bool takes_four_bits(const WeightKind& kind) { return kind.bits == kBits && kind.scales.columns == 0; }

constexpr CpuFeatures kDotprod = CpuFeature::kDotprod;
constexpr CpuFeatures kI8mm = CpuFeatures(CpuFeature::kI8mm) | kDotprod;
constexpr int kRank = -1;  // below all that read the file's tiles: only MOTE_KERNEL chooses these

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_kleidiai_1x8_dotprod", .role = CodeProducts::kRole, .needs = kDotprod,
                     .rank = kRank, .max_tokens = 1, .takes = takes_four_bits,
                     .functions = &kProducts<kOneDotprod, kWeights4, 1>);
MOTE_REGISTER_KERNEL(.name = "codes_kleidiai_4x8_dotprod", .role = CodeProducts::kRole, .needs = kDotprod,
                     .rank = kRank, .min_tokens = 2, .takes = takes_four_bits,
                     .functions = &kProducts<kSomeDotprod, kWeights4, 4>);
MOTE_REGISTER_KERNEL(.name = "codes_kleidiai_1x8_i8mm", .role = CodeProducts::kRole, .needs = kI8mm, .rank = kRank,
                     .max_tokens = 1, .takes = takes_four_bits, .functions = &kProducts<kOneI8mm, kWeights8, 1>);
MOTE_REGISTER_KERNEL(.name = "codes_kleidiai_4x8_i8mm", .role = CodeProducts::kRole, .needs = kI8mm, .rank = kRank,
                     .min_tokens = 2, .takes = takes_four_bits, .functions = &kProducts<kSomeI8mm, kWeights8, 4>);

}  // namespace mote::kleidiai
