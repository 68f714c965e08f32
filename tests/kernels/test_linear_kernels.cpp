// What multiplies int8 codes with tiles: the same bits from every kernel that this CPU has, whatever it packs.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "kernels/ops/linear/product.h"
#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

std::vector<const Kernel*> kernels_of(std::string_view role, const Tensor& weight, int64_t tokens) {
  std::vector<const Kernel*> found;
  for (const Kernel* kernel : all_kernels()) {
    const bool fits = kernel->role == role && cpu_features()->has_all(kernel->needs) && kernel->min_tokens <= tokens &&
                      tokens <= kernel->max_tokens &&
                      (kernel->takes == nullptr || kernel->takes(mote::WeightKind::of(weight)));
    if (fits) found.push_back(kernel);
  }
  return found;
}

std::vector<const Kernel*> code_kernels(const Tensor& weight, int64_t tokens) {
  return kernels_of(CodeProducts::kRole, weight, tokens);
}

Product product_of(const Kernel& kernel, const Tensor& weight, PackedWeights& packed) {
  Product product;
  if (kernel.role == GroupProducts::kRole) {
    product.groups = static_cast<const GroupProducts*>(kernel.functions);
    product.x.rows = *select_functions<RowKernels>(mote::WeightKind::of(weight), 1);
    product.x.mode = ActivationMode::kGroups;
    return product;
  }
  product.codes = static_cast<const CodeProducts*>(kernel.functions);
  product.x = {*select_functions<RowKernels>(mote::WeightKind::of(weight), 1), product.codes->code_packing,
               product.codes->layout, ActivationMode::kCodes};
  if (product.codes->weight_packing != nullptr) product.packed = *packed.pack(weight, *product.codes->weight_packing);
  return product;
}

// [tokens][rows, rounded up to 64]
std::vector<float> multiply(const Product& product, const Tensor& weight, const Tensor& x) {
  const Matrix matrix = matrix_of(weight, 0);
  const int64_t tokens = x.size(0), blocks = (tokens + kTokenBlock - 1) / kTokenBlock, wide = kMaxStreams * kTileRows;
  const int64_t stride = (matrix.rows + wide - 1) / wide * wide;
  TestPool threads(2);
  std::vector<std::byte> memory(activations_bytes(product.x, matrix, tokens, blocks, 2) +
                                product.scratch_bytes(matrix) + 128);
  Scratch scratch(
      {reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64), memory.size() - 64});
  const Activations rows = prepare_activations(product.x, x, {}, matrix, nullptr, scratch, threads);
  std::byte* own = scratch.take<std::byte>(static_cast<int64_t>(product.scratch_bytes(matrix)));
  std::vector<float> y(static_cast<size_t>(tokens * stride));
  for (int64_t n = 0; n < matrix.rows; n += wide) {
    Streams streams;
    for (int64_t row = n; row < std::min(n + wide, matrix.rows); row += kTileRows) streams.add(row);
    multiply_streams(product, matrix, streams, rows, 0, blocks, y.data() + n, stride, own);
  }
  return y;
}

void expect_same_bits(const Tensor& weight, const Tensor& x, std::string_view role = CodeProducts::kRole) {
  PackedWeights packed;
  std::vector<float> expected;
  for (const Kernel* kernel : kernels_of(role, weight, x.size(0))) {
    const std::vector<float> y = multiply(product_of(*kernel, weight, packed), weight, x);
    if (expected.empty()) expected = y;
    ASSERT_EQ(0, std::memcmp(expected.data(), y.data(), y.size() * sizeof(float)))
        << kernel->name << ": " << x.size(0) << " tokens, " << weight.size(0) << " x " << weight.size(1)
        << ", groups of " << weight.group_size;
  }
}

TEST(LinearKernels, give_the_same_bits) {
  for (const int bits : {1, 2, 3, 4, 5, 6, 7, 8}) {
    for (const int group_size : {32, 256}) {
      for (const int64_t columns : {group_size, 1024 + group_size}) {
        const Tiles weight = random_tiles({37, columns}, bits, group_size, 1);
        for (const int64_t tokens : {1, 17})
          expect_same_bits(weight.owned.tensor, random_floats({tokens, columns}, 2).tensor);
      }
    }
  }
}

TEST(LinearKernels, give_the_same_bits_for_every_number_of_tokens) {
  for (const int group_size : {32, 64, 128, 256}) {
    const Tiles weight = random_tiles({83, 1280}, 4, group_size, 3);
    for (const int64_t tokens : {1, 2, 7, 64, 257})
      expect_same_bits(weight.owned.tensor, random_floats({tokens, 1280}, 4).tensor);
  }
}

TEST(LinearKernels, of_groups_give_the_same_bits) {
  static constexpr int8_t kSmallCodebook[16] = {-16, -12, -9, -7, -5, -3, -2, -1, 0, 1, 2, 4, 6, 9, 12, 15};
  static constexpr int8_t kCodebook[16] = {-128, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 127};
  const auto none = WeightOffset::kNone, minimum = WeightOffset::kMinimum, zero = WeightOffset::kZero;
  struct Kind {
    int bits, group_size;
    TileScales scales;
  };
  const Kind kinds[] = {{4, 32, {32, none, false, nullptr}},       {8, 32, {32, none, true, nullptr}},
                        {5, 32, {32, minimum, false, nullptr}},    {6, 16, {256, none, false, nullptr}},
                        {2, 16, {256, minimum, true, nullptr}},    {4, 32, {32, none, false, kCodebook}},
                        {4, 16, {16, none, true, kCodebook}},      {4, 32, {32, none, true, kSmallCodebook}},
                        {4, 16, {16, none, true, kSmallCodebook}}, {4, 128, {128, zero, false, nullptr}},
                        {4, 32, {256, minimum, false, nullptr}},   {3, 16, {16, zero, false, nullptr}}};
  for (const Kind& kind : kinds) {
    const Tiles weight = random_tiles({83, 1280}, kind.bits, kind.group_size, kind.scales, 1);
    for (const int64_t tokens : {1, 2, 7, 19, 64}) {
      ASSERT_GE(kernels_of(GroupProducts::kRole, weight.owned.tensor, tokens).size(), 1u);
      expect_same_bits(weight.owned.tensor, random_floats({tokens, 1280}, 2).tensor, GroupProducts::kRole);
    }
  }
  const Tiles plain = random_tiles({83, 1280}, 4, 32, 1);
  expect_same_bits(plain.owned.tensor, random_floats({5, 1280}, 2).tensor, GroupProducts::kRole);
}

// Every product of the same sign and as large as it can be.
Tiles largest_tiles(const Shape& shape, bool lowest_codes) {
  Tiles tiles = random_tiles(shape, 4, 32, 5);
  const int64_t groups = shape[1] / 32, block = block_bytes(4, 32, groups);
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t g = 0; g < groups; ++g) {
      std::byte* tile = tiles.owned.bytes.data() + row / 16 * block + g * tile_bytes(4, 32);
      tile[code_bytes(4, 32) + row % 16] = std::byte{15};
      for (int64_t i = 0; i < 16; ++i) {
        tile[64 * (i / 4) + 4 * (row % 16) + i % 4] = lowest_codes ? std::byte{0x00} : std::byte{0xff};
      }
    }
  }
  return tiles;
}

TEST(LinearKernels, give_the_same_bits_for_the_largest_sums) {
  for (const bool lowest_codes : {false, true}) {
    const Tiles weight = largest_tiles({16, 8192}, lowest_codes);
    for (const float value : {1.0f, -1.0f}) {
      Owned x = make(DType::kFloat32, {5, 8192});
      for (int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = i % 7 == 3 && i >= 8192 ? value * 0.99f : value;
      expect_same_bits(weight.owned.tensor, x.tensor);
    }
  }
}

TEST(PackedWeights, are_packed_once_for_a_weight_and_a_packing) {
  const Tiles first = random_tiles({3, 20, 64}, 4, 32, 1), second = random_tiles({20, 64}, 4, 32, 2);
  PackedWeights packed;
  EXPECT_EQ(0u, packed.bytes());
  std::map<const WeightPacking*, uint64_t> expected;
  for (int round = 0; round < 2; ++round) {
    for (const Kernel* kernel : code_kernels(first.owned.tensor, 1)) {
      const WeightPacking* packing = static_cast<const CodeProducts*>(kernel->functions)->weight_packing;
      if (packing == nullptr) continue;
      const PackedWeight* weight = *packed.pack(first.owned.tensor, *packing);
      EXPECT_EQ(weight, *packed.pack(first.owned.tensor, *packing));
      EXPECT_NE(weight, *packed.pack(second.owned.tensor, *packing));
      const auto* tiles = first.owned.as<std::byte>();
      const auto block = static_cast<int64_t>(packing->block_bytes(32, 2));
      EXPECT_EQ(5 * block, weight->block_of(tiles + 5 * block_bytes(4, 32, 2)) - weight->block_of(tiles));
      expected[packing] = static_cast<uint64_t>((3 * 2 + 2) * block);
    }
  }
  uint64_t bytes = 0;
  for (const auto& [packing, each] : expected) bytes += each;
  EXPECT_EQ(bytes, packed.bytes());
}

}  // namespace
}  // namespace mote::test
