// Linear layers in every form of weights, against float64.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/xnnpack/library.h"
#include "kernels/formats.h"
#include "tests/backends/xnnpack/harness.h"

namespace mote::xnnpack::test {
namespace {

using mote::test::multiply_rows;
using mote::test::quantised_rows;
using mote::test::random_floats;
using mote::test::random_tiles;
using mote::test::Tiles;
using mote::test::to_doubles;

TEST(XnnpackLinear, multiplies_float32) {
  if (!has_library()) GTEST_SKIP();
  const int64_t n = 37, k = 51;
  const Owned weight = random_floats({n, k}, 1), bias = random_floats({n}, 2);
  GraphBuilder graph;
  const int32_t x = graph.input({1, kT, k}), y = graph.output({1, kT, n});
  graph.node(fb::Op::fully_connected, {x, graph.weight({n, k}, 0), graph.weight({n}, 1)}, y);
  Loaded loaded(graph.build(), {&weight, &bias});
  for (const int64_t tokens : {1, 2, 7, 64, 257, 3}) {
    const Owned in = random_floats({1, tokens, k}, 3);
    const Status status = loaded.run({&in}, {{1, tokens, n}}, tokens);
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<double> expected = multiply_rows(to_doubles(in), to_doubles(weight), n, k);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += static_cast<double>(bias.as<float>()[i % static_cast<size_t>(n)]);
    EXPECT_LT(relative_error(loaded.output(), expected), 1e-5) << "T = " << tokens;
  }
}

struct Case {
  int bits;
  int group_size;
  int64_t n;
  int64_t k;
};

Bytes one_product(const Case& c, fb::WeightForm form, bool quantise) {
  GraphBuilder graph;
  const int32_t x = graph.input({1, kT, c.k}), y = graph.output({1, kT, c.n});
  int32_t rows = x;
  if (quantise) graph.node(fb::Op::convert, {x}, rows = graph.activation({1, kT, c.k}, fb::DType::int8_rows));
  graph.node(fb::Op::fully_connected, {rows, graph.weight({c.n, c.k}, 0, form)}, y);
  return graph.build();
}

// form int4_blocks: the product, then its multiplication with the scales of rows; the 8-bit ones: one or two products.
Bytes quantised_graph(const Case& c, bool as_int4, bool quantise) {
  GraphBuilder graph;
  const int32_t x = graph.input({1, kT, c.k}), y = graph.output({1, kT, c.n});
  int32_t rows = x;
  if (quantise) graph.node(fb::Op::convert, {x}, rows = graph.activation({1, kT, c.k}, fb::DType::int8_rows));
  if (as_int4) {
    const int32_t product = graph.activation({1, kT, c.n});
    graph.node(fb::Op::fully_connected, {rows, graph.weight({c.n, c.k}, 0, fb::WeightForm::int4_blocks)}, product);
    graph.node(fb::Op::binary, {product, graph.weight({c.n}, 0, fb::WeightForm::row_scales)}, y,
               fb::Function::multiply);
  } else if (c.bits <= 4) {
    graph.node(fb::Op::fully_connected, {rows, graph.weight({c.n, c.k}, 0, fb::WeightForm::int8_rows)}, y);
  } else {
    const int32_t high = graph.activation({1, kT, c.n}), low = graph.activation({1, kT, c.n});
    graph.node(fb::Op::fully_connected, {rows, graph.weight({c.n, c.k}, 0, fb::WeightForm::int8_high)}, high);
    graph.node(fb::Op::fully_connected, {rows, graph.weight({c.n, c.k}, 0, fb::WeightForm::int8_low)}, low);
    graph.node(fb::Op::binary, {high, low}, y, fb::Function::add);
  }
  return graph.build();
}

void compare(Loaded& loaded, const Case& c, const Tiles& weight, bool quantise) {
  for (const int64_t tokens : {1, 2, 7, 64, 257}) {
    const Owned in = random_floats({1, tokens, c.k}, static_cast<uint32_t>(tokens));
    const Status status = loaded.run({&in}, {{1, tokens, c.n}}, tokens);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto expected = multiply_rows(quantise ? quantised_rows(in) : to_doubles(in), weight.values, c.n, c.k);
    EXPECT_LT(relative_error(loaded.output(), expected), 1e-4)
        << "bits " << c.bits << " group " << c.group_size << " T " << tokens << (quantise ? " qd8" : " f32");
  }
}

void check(const Case& c, bool as_int4, bool quantise, int num_threads, const Api* api = nullptr) {
  SCOPED_TRACE(as_int4 ? "int4" : "int8");
  const auto multipliers = as_int4 ? Multipliers::kNotNegative : Multipliers::kAny;
  const Tiles weight = random_tiles({c.n, c.k}, c.bits, c.group_size, 7, multipliers);
  Loaded loaded(quantised_graph(c, as_int4, quantise), {&weight.owned}, num_threads, "", 0, "xnnpack", api);
  compare(loaded, c, weight, quantise);
}

void check_per_channel(const Case& c, fb::WeightForm form) {
  SCOPED_TRACE(fb::EnumNameWeightForm(form));
  const Tiles weight = random_tiles({c.n, c.k}, c.bits, c.group_size, 7, Multipliers::kOne);
  for (const bool quantise : {true, false}) {
    Loaded loaded(one_product(c, form, quantise), {&weight.owned});
    compare(loaded, c, weight, quantise);
  }
}

TEST(XnnpackLinear, multiplies_int8_rows_with_int4_blocks) {
  if (!has_library()) GTEST_SKIP();
  for (const Case& c : {Case{4, 32, 35, 96}, Case{4, 64, 48, 256}, Case{4, 128, 7, 384}, Case{4, 256, 129, 512},
                        Case{3, 32, 20, 64}, Case{2, 64, 33, 128}, Case{1, 32, 16, 160}}) {
    check(c, true, true, 1);
  }
}

TEST(XnnpackLinear, multiplies_int8_rows_with_int8_rows) {
  if (!has_library()) GTEST_SKIP();
  for (const Case& c : {Case{4, 32, 35, 96}, Case{3, 64, 17, 128}, Case{2, 128, 65, 256}, Case{1, 256, 5, 256}})
    check(c, false, true, 1);
}

TEST(XnnpackLinear, multiplies_int8_rows_with_two_bytes) {
  if (!has_library()) GTEST_SKIP();
  for (const Case& c : {Case{8, 32, 35, 96}, Case{7, 64, 17, 128}, Case{6, 128, 65, 256}, Case{5, 256, 5, 256}})
    check(c, false, true, 1);
}

TEST(XnnpackLinear, multiplies_floats_with_quantised_weights) {
  if (!has_library()) GTEST_SKIP();
  for (const Case& c : {Case{4, 32, 35, 96}, Case{8, 64, 17, 128}}) check(c, false, false, 1);
}

TEST(XnnpackLinear, multiplies_with_one_scale_a_row) {
  if (!has_library()) GTEST_SKIP();
  for (const Case& c : {Case{4, 256, 35, 256}, Case{4, 32, 129, 96}, Case{3, 64, 20, 192}, Case{2, 128, 33, 128},
                        Case{1, 32, 16, 160}}) {
    check_per_channel(c, fb::WeightForm::int4_rows);
    check_per_channel(c, fb::WeightForm::int8_rows);
  }
  for (const Case& c : {Case{8, 256, 35, 512}, Case{7, 32, 17, 96}, Case{6, 128, 65, 256}, Case{5, 64, 5, 192}}) {
    check_per_channel(c, fb::WeightForm::int8_rows);
  }
}

// The first row's first multiplier, and its scale.
std::byte* multiplier_of(Tiles& weight, const Case& c) {
  return weight.owned.as<std::byte>() + code_bytes(c.bits, c.group_size);
}
std::byte* scale_of(Tiles& weight, const Case& c) {
  return weight.owned.as<std::byte>() + c.k / c.group_size * tile_bytes(c.bits, c.group_size);
}

TEST(XnnpackLinear, rows_without_a_scale_are_zeros) {
  if (!has_library()) GTEST_SKIP();
  for (const Case& c : {Case{4, 32, 17, 64}, Case{8, 32, 17, 64}}) {
    Tiles weight = random_tiles({c.n, c.k}, c.bits, c.group_size, 7, Multipliers::kOne);
    std::memset(scale_of(weight, c), 0, sizeof(float));
    std::fill_n(weight.values.begin(), c.k, 0.0);
    Loaded loaded(one_product(c, c.bits == 4 ? fb::WeightForm::int4_rows : fb::WeightForm::int8_rows, true),
                  {&weight.owned});
    compare(loaded, c, weight, true);
  }
}

TEST(XnnpackLinear, refuses_multipliers_where_rows_have_one_scale) {
  if (!has_library()) GTEST_SKIP();
  for (const Case& c : {Case{4, 32, 17, 64}, Case{8, 32, 17, 64}}) {
    Tiles weight = random_tiles({c.n, c.k}, c.bits, c.group_size, 7, Multipliers::kOne);
    *multiplier_of(weight, c) = std::byte{3};
    Loaded loaded(one_product(c, c.bits == 4 ? fb::WeightForm::int4_rows : fb::WeightForm::int8_rows, true),
                  {&weight.owned});
    EXPECT_EQ(loaded.status().code(), Code::kInvalidProgram);
    EXPECT_NE(loaded.status().message().find("multiplier 3 of row 0, group 0: must be 0 or 1"), std::string::npos)
        << loaded.status().message();
  }
}

TEST(XnnpackLinear, refuses_negative_multipliers_of_blocks) {
  if (!has_library()) GTEST_SKIP();
  const Case c{4, 32, 17, 64};
  Tiles weight = random_tiles({c.n, c.k}, c.bits, c.group_size, 7, Multipliers::kNotNegative);
  *multiplier_of(weight, c) = std::byte{0xFD};
  Loaded loaded(quantised_graph(c, true, true), {&weight.owned});
  EXPECT_EQ(loaded.status().code(), Code::kInvalidProgram);
  EXPECT_NE(loaded.status().message().find("multiplier -3 of row 0, group 0: must be 0 to 15 for int4_blocks"),
            std::string::npos)
      << loaded.status().message();
}

TEST(XnnpackLinear, runs_on_the_threads_of_the_session) {
  if (!has_library()) GTEST_SKIP();
  for (const int num_threads : {2, 4}) check({4, 32, 515, 256}, true, true, num_threads);
}

TEST(XnnpackLinear, runs_on_threads_of_its_own_where_the_pthreadpool_is_older) {
  if (!has_library()) GTEST_SKIP();
  Api older = **library();
  older.pthreadpool_create_v2 = nullptr;
  for (const int num_threads : {1, 2, 4}) check({4, 32, 515, 256}, true, true, num_threads, &older);
}

}  // namespace
}  // namespace mote::xnnpack::test
