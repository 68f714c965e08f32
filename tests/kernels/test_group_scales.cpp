// Tiles with float16 scales, and activations that are rounded in groups, against sums in double.
#include <gtest/gtest.h>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

constexpr int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t kSmallCodebook[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct Kind {
  const char* name;
  int bits;
  int group_size;
  TileScales scales;  // columns = 0: multipliers of row scales
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

const TileScales kOf32 = {32, WeightOffset::kNone, false, nullptr};

// By the formats whose numbers they hold.
std::vector<Kind> kinds() {
  const auto minimum = WeightOffset::kMinimum, zero = WeightOffset::kZero, none = WeightOffset::kNone;
  std::vector<Kind> kinds = {
      {"Q4_0", 4, 32, kOf32},
      {"Q5_0", 5, 32, kOf32},
      {"Q8_0", 8, 32, kOf32},
      {"Q4_1", 4, 32, {32, minimum, false, nullptr}},
      {"Q5_1", 5, 32, {32, minimum, false, nullptr}},
      {"Q2_K", 2, 16, {256, minimum, false, nullptr}},
      {"Q3_K", 3, 16, {256, none, false, nullptr}},
      {"Q4_K", 4, 32, {256, minimum, false, nullptr}},
      {"Q5_K", 5, 32, {256, minimum, false, nullptr}},
      {"Q6_K", 6, 16, {256, none, false, nullptr}},
      {"seven", 7, 64, {128, minimum, true, nullptr}},
      {"IQ4_NL", 4, 32, {32, none, false, kCodebook}},
      {"IQ4_XS", 4, 32, {256, none, false, kCodebook}},
      {"NVFP4", 4, 16, {16, none, true, kSmallCodebook}},
      {"MXFP4", 4, 32, {32, none, true, kSmallCodebook}},
      {"GPTQ", 4, 128, {128, zero, false, nullptr}},
      {"GPTQ8", 8, 64, {64, zero, false, nullptr}},
      {"short_minimums", 4, 16, {16, minimum, true, nullptr}},
      {"short_zeros", 3, 16, {16, zero, false, nullptr}},
  };
  for (const int bits : {1, 4, 6, 8}) kinds.push_back({"multipliers", bits, bits == 4 ? 32 : 64, {}});
  return kinds;
}

Tiles random_weight(const Kind& kind, const Shape& shape, uint32_t seed) {
  return kind.scales.columns == 0 ? random_tiles(shape, kind.bits, kind.group_size, seed)
                                  : random_tiles(shape, kind.bits, kind.group_size, kind.scales, seed);
}

int64_t columns_of(const Kind& kind, int spans) {
  return spans * std::max<int64_t>({kind.scales.columns, kind.group_size, 32});
}

class GroupScales : public testing::TestWithParam<Kind> {};

TEST_P(GroupScales, agree_with_sums_in_double) {
  const Kind kind = GetParam();
  uint32_t seed = 1;
  for (const char* activations : {"grouped_int8", "float"}) {
    for (const int64_t tokens : {1, 2, 3, 4, 7, 67}) {
      for (const int64_t n : {1, 16, 83}) {
        const int64_t k = columns_of(kind, n == 83 ? 3 : 1);
        const Owned x = random_floats({tokens, k}, ++seed);
        const Tiles weight = random_weight(kind, {n, k}, ++seed);
        const bool is_float = std::string(activations) == "float";
        const std::vector<double> expected =
            multiply_rows(is_float ? to_doubles(x) : quantised_runs(x, 32), weight.values, n, k);
        OpCall call("mote.linear");
        call.input(x).input(weight.owned).output(DType::kFloat32, {tokens, n}).text("activations", activations);
        const Status status = call.run(2);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_LT(relative_error(call.result().as<float>(), expected), 5e-6)
            << activations << " " << tokens << " x " << n;
      }
    }
  }
}

TEST_P(GroupScales, give_the_same_bits_for_threads_and_chunks) {
  const Kind kind = GetParam();
  for (const char* activations : {"grouped_int8", "float"}) {
    const int64_t tokens = 35, n = 83, k = columns_of(kind, 1) + 512 / columns_of(kind, 1) * columns_of(kind, 1);
    const Owned x = random_floats({tokens, k}, 3);
    const Tiles weight = random_weight(kind, {n, k}, 4);
    const auto run = [&](const Owned& rows, int threads) {
      OpCall call("mote.linear");
      call.input(rows).input(weight.owned).output(DType::kFloat32, {rows.tensor.size(0), n});
      EXPECT_TRUE(call.text("activations", activations).run(threads).ok());
      return std::move(call.result());
    };
    const Owned whole = run(x, 1);
    EXPECT_TRUE(same_bits(whole, run(x, 3)));
    for (int64_t t = 0; t < tokens; ++t) {
      const Owned y = run(floats({1, k}, std::vector<float>(x.as<float>() + t * k, x.as<float>() + (t + 1) * k)), 1);
      EXPECT_EQ(0, std::memcmp(y.bytes.data(), whole.as<float>() + t * n, static_cast<size_t>(n) * 4)) << t;
    }
  }
}

TEST_P(GroupScales, embed_rows) {
  const Kind kind = GetParam();
  const int64_t k = columns_of(kind, 2);
  const Tiles weight = random_weight(kind, {37, k}, 10);
  OpCall call("mote.embedding");
  call.input(integers({5}, {0, 36, 17, 16, 0})).input(weight.owned).output(DType::kFloat32, {5, k});
  ASSERT_TRUE(call.run(2).ok());
  std::vector<double> expected;
  for (const int64_t id : {0, 36, 17, 16, 0}) {
    expected.insert(expected.end(), weight.values.begin() + id * k, weight.values.begin() + (id + 1) * k);
  }
  EXPECT_LT(relative_error(call.result().as<float>(), expected), 1e-7);
}

INSTANTIATE_TEST_SUITE_P(Tiles, GroupScales, testing::ValuesIn(kinds()), [](const auto& one) {
  return std::string(one.param.name) + "_" + std::to_string(one.param.bits);
});

TEST(GroupedInputs, are_those_of_a_dense_weight_rounded) {
  const Owned x = random_floats({3, 96}, 1), weight = random_floats({5, 96}, 2);
  OpCall call("mote.linear");
  call.input(x).input(weight).output(DType::kFloat32, {3, 5}).text("activations", "grouped_int8");
  ASSERT_TRUE(call.run().ok());
  EXPECT_LT(relative_error(call.result().as<float>(), multiply_rows(quantised_runs(x, 32), to_doubles(weight), 5, 96)),
            2e-6);
}

TEST(GroupedInputs, survive_rows_that_are_zero_or_not_finite) {
  const Tiles weight = random_tiles({16, 32}, 4, 32, kOf32, 1);
  Owned x = make(DType::kFloat32, {5, 32});
  x.as<float>()[32] = std::numeric_limits<float>::quiet_NaN();
  x.as<float>()[64] = std::numeric_limits<float>::infinity();
  x.as<float>()[96] = -std::numeric_limits<float>::max();
  x.as<float>()[128] = std::numeric_limits<float>::denorm_min();
  OpCall call("mote.linear");
  call.input(x).input(weight.owned).output(DType::kFloat32, {5, 16}).text("activations", "grouped_int8");
  ASSERT_TRUE(call.run().ok());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(0.0f, call.result().as<float>()[i]);
    EXPECT_EQ(0.0f, call.result().as<float>()[64 + i]);
  }
}

TEST(GroupScalesEdges, are_refused_where_they_do_not_fit) {
  const auto message = [](int bits, int group_size, const TileScales& scales, const char* activations) {
    Tiles tiles = random_tiles({16, 256}, 4, 32, kOf32, 1);
    tiles.owned.tensor.bits = static_cast<uint8_t>(bits);
    tiles.owned.tensor.group_size = group_size;
    tiles.owned.tensor.scales = scales;
    OpCall call("mote.linear");
    call.input(random_floats({2, 256}, 1)).input(tiles.owned).output(DType::kFloat32, {2, 16});
    return std::string(call.text("activations", activations).check().message());
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const auto none = WeightOffset::kNone, minimum = WeightOffset::kMinimum, zero = WeightOffset::kZero;
  EXPECT_EQ("", message(4, 32, kOf32, "grouped_int8"));
  EXPECT_TRUE(has(message(4, 48, kOf32, "float"), "group_size: must be 16, 32, 64, 128 or 256"));
  EXPECT_TRUE(has(message(4, 64, kOf32, "float"), "scale_columns: must be 0, 16, 32, 64, 128 or 256, and at least"));
  EXPECT_TRUE(has(message(4, 32, {48, none, true, nullptr}, "float"), "scale_columns: must be 0"));
  EXPECT_TRUE(has(message(8, 32, {32, minimum, true, nullptr}, "float"), "bits: must be 1..7 with minimums"));
  EXPECT_TRUE(has(message(4, 32, {64, zero, true, nullptr}, "float"), "scale_columns: must be group_size with zero"));
  EXPECT_TRUE(has(message(5, 32, {32, none, true, kCodebook}, "float"), "codebook: must be of 4 bits"));
  EXPECT_TRUE(has(message(1, 32, kOf32, "float"), "bits: must be 2..8 with float16 scales"));
  EXPECT_TRUE(has(message(4, 32, {0, none, false, nullptr}, "float"), "scale_columns: must not be 0"));
  EXPECT_TRUE(has(message(4, 32, kOf32, "int8"), "linear.codes for 4 bits in groups of 32 with float16 scales of 32"));
}

}  // namespace
}  // namespace mote::test
