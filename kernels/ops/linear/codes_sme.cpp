// int8 activations x tiles of 1 to 8 bits in the array of Arm's SME, where its vectors have 512 bits: 16 weight rows x
// 4 columns x 16 tokens an instruction, whose sums stay in the array for a whole range of columns.
#include "kernels/ops/linear/codes_registers.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int kMinTokens = kTokenBlock;  // for fewer, some of an instruction's 16 x 16 sums are of no use

// Stores what a caller left dormant in the array where that one said (AAPCS64, lazy saving of ZA; S3_3_C13_C0_5 is
// TPIDR2_EL0).
MOTE_INLINE void save_dormant_array() {
  asm volatile(
      R"(.arch_extension sme
        mrs x9, S3_3_C13_C0_5
        cbz x9, 3f
        ldr x10, [x9]
        ldrh w11, [x9, #8]
        mov w12, #0
        cbz x10, 2f
      1:
        cmp w12, w11
        b.ge 2f
        str za[w12, #0], [x10]
        add x10, x10, #64
        add w12, w12, #1
        b 1b
      2:
        msr S3_3_C13_C0_5, xzr
      3:)"
      :
      :
      : "x9", "x10", "x11", "x12", "cc", "memory");
}

// sums[2 b + p][t][r] = the products of token t of block b with row r of panel p, where codes and panels are
// [quads][16] [4] and quads are even. In assembly, since compilers have had intrinsics only since gcc 14 and clang 18.
void multiply_array(const std::byte* panel0, const std::byte* panel1, const int8_t* codes0, const int8_t* codes1,
                    int64_t quads, int32_t* sums) {
  save_dormant_array();
  asm volatile(
      R"(.arch_extension sme
        smstart
        ptrue p0.b
        zero {za}
      1:
      .irp i, 0, 1
        ld1b {z\i\().b}, p0/z, [%[codes0], #\i, mul vl]
        ld1b {z1\i\().b}, p0/z, [%[codes1], #\i, mul vl]
        ld1b {z2\i\().b}, p0/z, [%[panel0], #\i, mul vl]
        ld1b {z3\i\().b}, p0/z, [%[panel1], #\i, mul vl]
      .endr
      .irp i, 0, 1
        smopa za0.s, p0/m, p0/m, z\i\().b, z2\i\().b
        smopa za1.s, p0/m, p0/m, z\i\().b, z3\i\().b
        smopa za2.s, p0/m, p0/m, z1\i\().b, z2\i\().b
        smopa za3.s, p0/m, p0/m, z1\i\().b, z3\i\().b
      .endr
        add %[codes0], %[codes0], #128
        add %[codes1], %[codes1], #128
        add %[panel0], %[panel0], #128
        add %[panel1], %[panel1], #128
        subs %[quads], %[quads], #2
        b.gt 1b
        add x9, %[sums], #1024
        add x10, %[sums], #2048
        add x11, %[sums], #3072
        mov w12, #0
      2:
        st1w {za0h.s[w12, #0]}, p0, [%[sums]]
        st1w {za1h.s[w12, #0]}, p0, [x9]
        st1w {za2h.s[w12, #0]}, p0, [x10]
        st1w {za3h.s[w12, #0]}, p0, [x11]
        add %[sums], %[sums], #64
        add x9, x9, #64
        add x10, x10, #64
        add x11, x11, #64
        add w12, w12, #1
        cmp w12, #16
        b.lt 2b
        smstop)"
      : [panel0] "+r"(panel0), [panel1] "+r"(panel1), [codes0] "+r"(codes0), [codes1] "+r"(codes1), [quads] "+r"(quads),
        [sums] "+r"(sums)
      :
      : "x9", "x10", "x11", "x12", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
        "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
        "v29", "v30", "v31", "cc", "memory");
}

struct Sme {
  static constexpr int64_t kStep = 4;
  static constexpr int64_t kPanelColumns = 2048;  // so many that entering the mode takes little of the time

  class Splitter {
   public:
    Splitter(int, const I32x16& multipliers)
        : multipliers_(as_bytes((multipliers & splat_i32(0xff)) * splat_i32(0x01010101))) {}
    MOTE_INLINE void operator()(const Bytes64& codes, std::byte* low, std::byte* high) const {
      store_bytes(low, multiply_bytes(codes, multipliers_));
      store_bytes(high, each_bytes([&](int i) {
                    const int16x8_t first = vmull_s8(vget_low_s8(codes.v[i]), vget_low_s8(multipliers_.v[i]));
                    return vrshrn_high_n_s16(vrshrn_n_s16(first, 8), vmull_high_s8(codes.v[i], multipliers_.v[i]), 8);
                  }));
    }

   private:
    Bytes64 multipliers_;
  };

  static int64_t code_pitch(int) { return kStep * kTokenBlock; }

  template <int kCount>
  static void multiply(const std::byte* first_panel, const std::byte* second_panel, const int8_t* const* codes,
                       const int*, int64_t quads, BlockSums* sums) {
    multiply_array(first_panel, second_panel, codes[0], codes[kCount - 1], quads, &sums[0][0][0][0]);
  }
};

int64_t row_bytes(int64_t columns) { return columns; }

// Rows of a block lie side by side, [columns / 4][16][4], also those that it lacks.
void pack_row(const int8_t* codes, int64_t columns, int row, int, int8_t* to) {
  for (int64_t k = 0; k < columns; k += 4) std::memcpy(to + kTokenBlock * k + 4 * row, codes + k, 4);
}

constexpr CodePacking kCodes = {kTokenBlock, row_bytes, pack_row};
constexpr CodeProducts kProducts = {CodeLayout::kQuads, RegisterProducts<Sme>::scratch_bytes,
                                    RegisterProducts<Sme>::multiply, nullptr, &kCodes};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "codes_tiles_" MOTE_ISA_NAME, .role = CodeProducts::kRole,
                     .needs = kNeeds | CpuFeature::kSme, .rank = kRank + 10, .min_tokens = kMinTokens,
                     .takes = takes_tiles, .functions = &kProducts);

}  // namespace MOTE_ISA
}  // namespace mote
