// mote.head_linear against a product of each head in double.
#include <gtest/gtest.h>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

struct Matrices {
  const char* name;
  int bits = 0, group_size = 0;
  const char* activations = "float";
  int64_t heads = 5, rows = 37, columns = 64;
  double tolerance = 3e-6;
};

std::ostream& operator<<(std::ostream& out, const Matrices& m) { return out << m.name; }

struct Stack {
  explicit Stack(const Matrices& m) {
    const Shape sizes{m.heads, m.rows, m.columns};
    if (m.bits == 0) {
      weight = random_floats(sizes, 1, 0.2f);
      values = to_doubles(weight);
    } else {
      Tiles tiles = random_tiles(sizes, m.bits, m.group_size, 1);
      weight = std::move(tiles.owned);
      values = std::move(tiles.values);
    }
  }
  Owned weight;
  std::vector<double> values;
};

// Tokens [begin, end) of x [1, T, H, K], heads lying before tokens in memory if they are turned.
Status multiply(const Matrices& m, const Stack& stack, const Owned& x, int64_t begin, int64_t end, int threads,
                bool turned, Owned* out) {
  const int64_t row = m.heads * m.columns;
  Owned part = floats({1, end - begin, m.heads, m.columns},
                      std::vector<float>(x.as<float>() + begin * row, x.as<float>() + end * row));
  if (turned) part = with_layout(part, {0, 2, 1, 3});
  OpCall call("mote.head_linear");
  call.input(part).input(stack.weight);
  call.output(DType::kFloat32, {1, end - begin, m.heads, m.rows}).text("activations", m.activations);
  const Status status = call.run(threads);
  if (status.ok()) *out = std::move(call.result());
  return status;
}

class HeadLinear : public testing::TestWithParam<Matrices> {};

TEST_P(HeadLinear, agrees_with_products_in_double_for_all_chunks_and_threads) {
  const Matrices& m = GetParam();
  const Stack stack(m);
  constexpr int64_t kTokens = 70;
  const Owned x = random_floats({1, kTokens, m.heads, m.columns}, 2);
  std::vector<double> expected;
  for (int64_t i = 0; i < kTokens * m.heads; ++i) {
    for (int64_t n = 0; n < m.rows; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < m.columns; ++k) {
        sum += static_cast<double>(x.as<float>()[i * m.columns + k]) *
               stack.values[static_cast<size_t>((i % m.heads * m.rows + n) * m.columns + k)];
      }
      expected.push_back(sum);
    }
  }
  Owned whole;
  const Status status = multiply(m, stack, x, 0, kTokens, 3, false, &whole);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_LT(relative_error(whole.as<float>(), expected), m.tolerance);
  for (const int64_t chunk : {1, 7, 33}) {
    for (int64_t begin = 0; begin < kTokens; begin += chunk) {
      Owned out;
      const int64_t end = std::min(kTokens, begin + chunk);
      ASSERT_TRUE(multiply(m, stack, x, begin, end, static_cast<int>(begin % 4) + 1, begin % 2 == 0, &out).ok());
      EXPECT_EQ(0, std::memcmp(out.bytes.data(), whole.as<float>() + begin * m.heads * m.rows, out.bytes.size()))
          << chunk << " at " << begin;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, HeadLinear,
    testing::Values(
        Matrices{.name = "dense"}, Matrices{.name = "one_row", .heads = 1, .rows = 1, .columns = 3},
        Matrices{.name = "wide", .heads = 2, .rows = 130}, Matrices{.name = "tiles", .bits = 4, .group_size = 32},
        Matrices{.name = "int8", .bits = 4, .group_size = 32, .activations = "int8", .tolerance = 3e-2},
        Matrices{.name = "groups", .bits = 8, .group_size = 64, .activations = "grouped_int8", .tolerance = 3e-2}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(HeadLinearRefuses, heads_and_columns_that_are_not_the_weights) {
  for (const Shape& sizes : {Shape{1, 3, 4, 8}, Shape{1, 3, 2, 9}, Shape{8}}) {
    Shape result = sizes;
    result.back() = 6;
    OpCall call("mote.head_linear");
    call.input(random_floats(sizes, 1)).input(random_floats({2, 6, 8}, 2));
    call.output(DType::kFloat32, result).text("activations", "float");
    EXPECT_EQ(Code::kInvalidProgram, call.run().code());
  }
}

}  // namespace
}  // namespace mote::test
