// mote.linear, mote.gated_linear, mote.embedding against sums in double.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

struct WeightKind {
  DType dtype;
  int bits;
  int group_size;
  const char* activations;
};

std::ostream& operator<<(std::ostream& out, const WeightKind& kind) {
  return out << dtype_name(kind.dtype) << "_" << kind.bits << "_" << kind.group_size << "_" << kind.activations;
}

struct Weight {
  Owned owned;
  std::vector<double> values;
};

Weight random_weight(const WeightKind& kind, const Shape& shape, uint32_t seed) {
  if (kind.bits != 0) {
    Tiles tiles = random_tiles(shape, kind.bits, kind.group_size, seed);
    return {std::move(tiles.owned), std::move(tiles.values)};
  }
  Owned dense = random_floats(shape, seed, 0.2f);
  if (kind.dtype != DType::kFloat32) dense = narrow(dense, kind.dtype);
  std::vector<double> values = to_doubles(dense);
  return {std::move(dense), std::move(values)};
}

std::vector<double> rows_of(const Owned& x, const WeightKind& kind) {
  const std::string activations = kind.activations;
  if (activations == "float") return to_doubles(x);
  return activations == "int8" ? quantised_rows(x) : quantised_runs(rotated_rows(x), x.tensor.size(-1));
}

class Linear : public testing::TestWithParam<WeightKind> {};

TEST_P(Linear, agrees_with_sums_in_double) {
  const WeightKind kind = GetParam();
  uint32_t seed = 1;
  for (const int64_t tokens : {1, 2, 7, 64, 257}) {
    for (const int64_t n : {1, 16, 37}) {
      const int64_t k = kind.bits == 0 ? 53 : 2 * kind.group_size;
      const Owned x = random_floats({1, tokens, k}, ++seed);
      const Weight weight = random_weight(kind, {n, k}, ++seed);
      const Owned bias = random_floats({n}, ++seed), residual = random_floats({1, tokens, n}, ++seed);
      std::vector<double> expected = multiply_rows(rows_of(x, kind), weight.values, n, k);
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] += static_cast<double>(bias.as<float>()[i % static_cast<size_t>(n)]) +
                       static_cast<double>(residual.as<float>()[i]);
      }
      OpCall call("mote.linear");
      call.input(x).input(weight.owned).input(bias).input(residual).output(DType::kFloat32, {1, tokens, n});
      call.text("activations", kind.activations);
      const Status status = call.run(2);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_LT(relative_error(call.result().as<float>(), expected), 5e-6) << tokens << " x " << n;
    }
  }
}

TEST_P(Linear, is_equal_to_the_bit_for_threads_and_chunks) {
  const WeightKind kind = GetParam();
  const int64_t tokens = 67, n = 83, k = kind.bits == 0 ? 131 : 2 * kind.group_size;
  const Owned x = random_floats({tokens, k}, 3);
  const Weight weight = random_weight(kind, {n, k}, 4);
  const auto run = [&](const Owned& rows, int threads) {
    OpCall call("mote.linear");
    call.input(rows).input(weight.owned).output(DType::kFloat32, {rows.tensor.size(0), n});
    call.text("activations", kind.activations);
    EXPECT_TRUE(call.run(threads).ok());
    return std::move(call.result());
  };
  const Owned whole = run(x, 1);
  for (const int threads : {2, 3, 4}) EXPECT_TRUE(same_bits(whole, run(x, threads)));
  for (int64_t t = 0; t < tokens; ++t) {
    const Owned one = floats({1, k}, std::vector<float>(x.as<float>() + t * k, x.as<float>() + (t + 1) * k));
    const Owned y = run(one, 1);
    EXPECT_EQ(0, std::memcmp(y.bytes.data(), whole.as<float>() + t * n, static_cast<size_t>(n) * sizeof(float))) << t;
  }
}

TEST_P(Linear, reads_strided_rows) {
  const WeightKind kind = GetParam();
  const int64_t tokens = 5, n = 18, k = kind.bits == 0 ? 20 : kind.group_size;
  const Owned x = random_floats({1, tokens, k}, 5);
  const Weight weight = random_weight(kind, {n, k}, 6);
  const auto run = [&](const Owned& rows) {
    OpCall call("mote.linear");
    call.input(rows).input(weight.owned).output(DType::kFloat32, {1, tokens, n}).text("activations", kind.activations);
    EXPECT_TRUE(call.run(2).ok());
    return std::move(call.result());
  };
  EXPECT_TRUE(same_bits(run(x), run(with_layout(x, {0, 2, 1}))));
}

TEST_P(Linear, gates_what_two_linears_and_the_function_give) {
  const WeightKind kind = GetParam();
  for (const int64_t features : {1, 16, 21, 48}) {
    const int64_t tokens = 35, k = kind.bits == 0 ? 40 : kind.group_size;
    const Owned x = random_floats({tokens, k}, 7);
    const Weight weight = random_weight(kind, {2 * features, k}, 8);
    const Owned bias = random_floats({2 * features}, 9);
    const std::vector<double> both = multiply_rows(rows_of(x, kind), weight.values, 2 * features, k);
    std::vector<double> expected;
    for (int64_t i = 0; i < tokens * features; ++i) {
      const int64_t t = i / features, f = i % features;
      const double gate = both[static_cast<size_t>(t * 2 * features + f)] + static_cast<double>(bias.as<float>()[f]);
      const double up = both[static_cast<size_t>(t * 2 * features + features + f)] +
                        static_cast<double>(bias.as<float>()[features + f]);
      expected.push_back(gate / (1 + std::exp(-gate)) * up);
    }
    OpCall call("mote.gated_linear");
    call.input(x).input(weight.owned).input(bias).output(DType::kFloat32, {tokens, features});
    call.text("activations", kind.activations).text("function", "silu");
    const Status status = call.run(3);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_LT(relative_error(call.result().as<float>(), expected), 2e-6) << features;
  }
}

TEST_P(Linear, embeds_rows_of_the_same_weight) {
  const WeightKind kind = GetParam();
  const int64_t rows = 37, k = kind.bits == 0 ? 19 : 2 * kind.group_size;
  const Weight weight = random_weight(kind, {rows, k}, 10);
  const Owned ids = integers({1, 5}, {0, 36, 17, 16, 0});
  OpCall call("mote.embedding");
  call.input(ids).input(weight.owned).output(DType::kFloat32, {1, 5, k});
  ASSERT_TRUE(call.run(2).ok());
  std::vector<double> expected;
  for (const int64_t id : {0, 36, 17, 16, 0}) {
    expected.insert(expected.end(), weight.values.begin() + id * k, weight.values.begin() + (id + 1) * k);
  }
  EXPECT_LT(relative_error(call.result().as<float>(), expected), 1e-7);
}

std::vector<WeightKind> weight_kinds() {
  std::vector<WeightKind> kinds = {{DType::kFloat32, 0, 0, "float"},
                                   {DType::kFloat16, 0, 0, "float"},
                                   {DType::kBFloat16, 0, 0, "float"},
                                   {DType::kBFloat16, 0, 0, "int8"}};
  for (int bits = 1; bits <= 8; ++bits) {
    for (const int group_size : {32, 64, 128, 256}) {
      kinds.push_back({DType::kInt8, bits, group_size, "float"});
      kinds.push_back({DType::kInt8, bits, group_size, "int8"});
      if (bits == 4 || bits == 8) kinds.push_back({DType::kInt8, bits, group_size, "rotated_int8"});
    }
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Weights, Linear, testing::ValuesIn(weight_kinds()),
                         [](const auto& one) { return testing::PrintToString(one.param); });

// Widths of one turn and of two, with an even and an odd power of two.
TEST(Rotation, keeps_dot_products_and_its_inverse_is_exact_but_for_rounding) {
  for (const int64_t k : {32, 64, 96, 256, 288, 512, 576, 1536, 2048, 4864}) {
    const Owned table = random_floats({3, k}, 1), rotated = rotated_rows(table);
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) {
        double before = 0, after = 0;
        for (int64_t i = 0; i < k; ++i) {
          before +=
              static_cast<double>(table.as<float>()[a * k + i]) * static_cast<double>(table.as<float>()[b * k + i]);
          after +=
              static_cast<double>(rotated.as<float>()[a * k + i]) * static_cast<double>(rotated.as<float>()[b * k + i]);
        }
        EXPECT_NEAR(before, after, 1e-5 * static_cast<double>(k));
      }
    }
    OpCall call("mote.embedding");
    call.input(integers({3}, {0, 1, 2})).input(rotated).output(DType::kFloat32, {3, k}).integers("rotated", {1});
    ASSERT_TRUE(call.run(2).ok());
    EXPECT_LT(relative_error(call.result().as<float>(), to_doubles(table)), 1e-6) << k;
  }
}

TEST(Rotation, spreads_one_large_channel_over_all) {
  for (const int64_t k : {64, 96, 576, 1536, 2048}) {
    for (const int64_t channel : {int64_t{0}, k / 2, k - 1}) {
      std::vector<float> row(static_cast<size_t>(k));
      row[static_cast<size_t>(channel)] = 1000.0f;
      const Owned rotated = rotated_rows(floats({1, k}, row));
      for (int64_t i = 0; i < k; ++i) EXPECT_LT(std::abs(rotated.as<float>()[i]), 3000.0 / std::sqrt(k)) << k;
    }
  }
}

TEST(Rotation, is_refused_for_columns_that_do_not_fit) {
  OpCall table("mote.embedding");
  table.input(integers({1}, {0})).input(random_floats({4, 24}, 1)).output(DType::kFloat32, {1, 24});
  table.integers("rotated", {1});
  EXPECT_NE(table.check().message().find("weight has 24 columns: must be a multiple of 16"), std::string::npos);
  OpCall linear("mote.linear");
  linear.input(random_floats({2, 24}, 1)).input(random_floats({4, 24}, 1)).output(DType::kFloat32, {2, 4});
  linear.text("activations", "rotated_int8");
  EXPECT_NE(linear.check().message().find("a weight has 24 columns: must be a multiple of 16"), std::string::npos);
}

TEST(LinearEdges, survives_rows_that_are_zero_or_not_finite) {
  const Tiles weight = random_tiles({16, 32}, 4, 32, 1);
  Owned x = make(DType::kFloat32, {4, 32});
  x.as<float>()[32] = std::numeric_limits<float>::quiet_NaN();
  x.as<float>()[64] = std::numeric_limits<float>::infinity();
  x.as<float>()[96] = -std::numeric_limits<float>::max();
  OpCall call("mote.linear");
  call.input(x).input(weight.owned).output(DType::kFloat32, {4, 16}).text("activations", "int8");
  ASSERT_TRUE(call.run().ok());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(0.0f, call.result().as<float>()[i]);
}

TEST(LinearEdges, has_no_effect_without_rows) {
  OpCall none("mote.linear");
  none.input(make(DType::kFloat32, {0, 8})).input(random_floats({4, 8}, 1)).output(DType::kFloat32, {0, 4});
  EXPECT_TRUE(none.run().ok());
}

TEST(LinearEdges, refuses_what_does_not_fit) {
  const Owned x = random_floats({2, 32}, 1);
  const auto status = [&](const Owned& input, const Owned& weight, const Shape& out) {
    OpCall call("mote.linear");
    call.input(input).input(weight).output(DType::kFloat32, out);
    return call.check();
  };
  EXPECT_TRUE(status(x, random_floats({4, 32}, 1), {2, 4}).ok());
  EXPECT_FALSE(status(x, random_floats({4, 31}, 1), {2, 4}).ok());
  EXPECT_FALSE(status(x, random_floats({4, 32}, 1), {2, 5}).ok());
  EXPECT_FALSE(status(x, random_floats({4, 32, 1}, 1), {2, 4}).ok());
  EXPECT_FALSE(status(make(DType::kFloat32, {2, 0}), make(DType::kFloat32, {4, 0}), {2, 4}).ok());
  EXPECT_FALSE(status(make(DType::kInt64, {2, 32}), random_floats({4, 32}, 1), {2, 4}).ok());
  EXPECT_FALSE(status(make(DType::kFloat32, {}), random_floats({4, 32}, 1), {4}).ok());
  Tiles tiles = random_tiles({16, 32}, 8, 32, 1);
  tiles.owned.tensor.group_size = 0;
  EXPECT_FALSE(status(x, tiles.owned, {2, 16}).ok());
  tiles.owned.tensor.group_size = 64;
  EXPECT_FALSE(status(x, tiles.owned, {2, 16}).ok());
  tiles.owned.tensor.group_size = 32;
  tiles.owned.tensor.bits = 9;
  EXPECT_FALSE(status(x, tiles.owned, {2, 16}).ok());
}

TEST(LinearEdges, refuses_ids_outside_the_table) {
  for (const int64_t id : {int64_t{-1}, int64_t{4}, INT64_MAX, INT64_MIN}) {
    OpCall call("mote.embedding");
    call.input(integers({1}, {id})).input(random_floats({4, 8}, 1)).output(DType::kFloat32, {1, 8});
    EXPECT_EQ(Code::kInvalidArgument, call.run().code());
  }
}

}  // namespace
}  // namespace mote::test
