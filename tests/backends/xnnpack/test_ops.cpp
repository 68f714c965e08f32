// Every node but linear layers, with sizes that grow with T.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/backends/xnnpack/harness.h"

namespace mote::xnnpack::test {
namespace {

using fb::Function;
using fb::Op;
using mote::test::random_floats;

double at(const Owned& tensor, int64_t i) { return static_cast<double>(tensor.as<float>()[i]); }

constexpr int64_t kTokens[] = {1, 2, 7, 64, 257, 5};

TEST(XnnpackOps, computes_unary_functions) {
  if (!has_library()) GTEST_SKIP();
  const std::vector<std::pair<Function, std::function<double(double)>>> cases = {
      {Function::abs, [](double x) { return std::abs(x); }},
      {Function::approximate_gelu,
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {Function::round, [](double x) { return std::nearbyint(x); }},
      {Function::ceil, [](double x) { return std::ceil(x); }},
      {Function::clamp, [](double x) { return std::clamp(x, -0.25, 0.75); }},
      {Function::cos, [](double x) { return std::cos(x); }},
      {Function::elu, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }},
      {Function::exp, [](double x) { return std::exp(x); }},
      {Function::floor, [](double x) { return std::floor(x); }},
      {Function::gelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2)); }},
      {Function::leaky_relu, [](double x) { return x > 0 ? x : 0.5 * x; }},
      {Function::neg, [](double x) { return -x; }},
      {Function::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Function::sin, [](double x) { return std::sin(x); }},
      {Function::square, [](double x) { return x * x; }},
      {Function::tanh, [](double x) { return std::tanh(x); }},
      {Function::log, [](double x) { return std::log(std::abs(x)); }},
      {Function::rsqrt, [](double x) { return 1 / std::sqrt(std::abs(x)); }},
      {Function::sqrt, [](double x) { return std::sqrt(std::abs(x)); }},
  };
  for (const auto& [function, expected] : cases) {
    const bool needs_positive = function == Function::log || function == Function::rsqrt || function == Function::sqrt;
    GraphBuilder graph;
    int32_t x = graph.input({1, kT, 13}), y = graph.output({1, kT, 13});
    if (needs_positive) x = graph.node(Op::unary, {x}, graph.activation({1, kT, 13})).output;
    fb::NodeT& node = graph.node(Op::unary, {x}, y, function);
    if (function == Function::clamp) node.numbers = {-0.25f, 0.75f};
    if (function == Function::elu || function == Function::leaky_relu) node.numbers = {0.5f};
    Loaded loaded(graph.build(), {});
    for (const int64_t tokens : kTokens) {
      const Owned in = random_floats({1, tokens, 13}, 3, 2.0f);
      const Status status = loaded.run({&in}, {{1, tokens, 13}}, tokens);
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<double> y_expected;
      for (int64_t i = 0; i < in.count(); ++i) y_expected.push_back(expected(at(in, i)));
      EXPECT_LT(relative_error(loaded.output(), y_expected), 2e-6) << fb::EnumNameFunction(function) << " T " << tokens;
    }
  }
}

TEST(XnnpackOps, broadcasts_binary_functions) {
  if (!has_library()) GTEST_SKIP();
  const std::vector<std::pair<Function, std::function<double(double, double)>>> cases = {
      {Function::add, std::plus<>()},
      {Function::subtract, std::minus<>()},
      {Function::multiply, std::multiplies<>()},
      {Function::divide, std::divides<>()},
      {Function::maximum, [](double a, double b) { return std::max(a, b); }},
      {Function::minimum, [](double a, double b) { return std::min(a, b); }}};
  const Owned row = random_floats({11}, 9);
  for (const auto& [function, expected] : cases) {
    GraphBuilder graph;
    const int32_t a = graph.input({1, kT, 11}), column = graph.input({1, kT, 1}), y = graph.output({1, kT, 11});
    const int32_t middle = graph.activation({1, kT, 11});
    graph.node(Op::binary, {a, column}, middle, function);
    graph.node(Op::binary, {graph.weight({11}, 0), middle}, y, Function::add);
    Loaded loaded(graph.build(), {&row});
    for (const int64_t tokens : kTokens) {
      const Owned in = random_floats({1, tokens, 11}, 3), other = random_floats({1, tokens, 1}, 4);
      const Status status = loaded.run({&in, &other}, {{1, tokens, 11}}, tokens);
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<double> y_expected;
      for (int64_t i = 0; i < in.count(); ++i)
        y_expected.push_back(at(row, i % 11) + expected(at(in, i), at(other, i / 11)));
      EXPECT_LT(relative_error(loaded.output(), y_expected), 1e-6) << fb::EnumNameFunction(function) << " T " << tokens;
    }
  }
}

TEST(XnnpackOps, normalises_rows_and_gives_probabilities) {
  if (!has_library()) GTEST_SKIP();
  GraphBuilder graph;
  const Sizes shape = {1, kT, 33}, column = {1, kT, 1};
  const int32_t x = graph.input(shape), normed = graph.output(shape), probabilities = graph.output(shape);
  const int32_t square = graph.activation(shape), mean = graph.activation(column), sum = graph.activation(column),
                root = graph.activation(column);
  graph.node(Op::unary, {x}, square, Function::square);
  graph.node(Op::mean, {square}, mean);
  graph.node(Op::binary, {mean, graph.constant({1}, {1e-5f})}, sum, Function::add);
  graph.node(Op::unary, {sum}, root, Function::rsqrt);
  graph.node(Op::binary, {x, root}, normed, Function::multiply);
  graph.node(Op::softmax, {normed}, probabilities);
  Loaded loaded(graph.build(), {});
  for (const int64_t tokens : kTokens) {
    const Owned in = random_floats({1, tokens, 33}, 3);
    const Status status = loaded.run({&in}, {{1, tokens, 33}, {1, tokens, 33}}, tokens);
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<double> y, p;
    for (int64_t row = 0; row < tokens; ++row) {
      double squares = 0, total = 0;
      for (int64_t i = 0; i < 33; ++i) squares += at(in, row * 33 + i) * at(in, row * 33 + i);
      for (int64_t i = 0; i < 33; ++i) y.push_back(at(in, row * 33 + i) / std::sqrt(squares / 33 + 1e-5));
      for (int64_t i = 0; i < 33; ++i) total += std::exp(y[static_cast<size_t>(row * 33 + i)]);
      for (int64_t i = 0; i < 33; ++i) p.push_back(std::exp(y[static_cast<size_t>(row * 33 + i)]) / total);
    }
    EXPECT_LT(relative_error(loaded.output(0), y), 1e-5) << "T " << tokens;
    EXPECT_LT(relative_error(loaded.output(1), p), 1e-5) << "T " << tokens;
  }
}

TEST(XnnpackOps, moves_elements) {
  if (!has_library()) GTEST_SKIP();
  GraphBuilder graph;  // [1, T, 6] as heads [1, 2, T, 3], the last token of each, and columns 1.. before column 0
  const int32_t x = graph.input({1, kT, 6}), last = graph.output({1, 2, 1, 3}), turned = graph.output({1, kT, 2, 3});
  const int32_t split = graph.activation({1, kT, 2, 3}), heads = graph.activation({1, 2, kT, 3});
  const int32_t tail = graph.activation({1, kT, 2, 2}), head = graph.activation({1, kT, 2, 1});
  const auto slice = [&](int32_t from, int32_t to, int axis, fb::Dim begin, fb::Dim end) {
    fb::NodeT& node = graph.node(Op::slice, {from}, to);
    node.axes = {axis};
    node.begin = std::make_unique<fb::Dim>(begin);
    node.end = std::make_unique<fb::Dim>(end);
  };
  graph.node(Op::reshape, {x}, split);
  graph.node(Op::transpose, {split}, heads).axes = {0, 2, 1, 3};
  slice(heads, last, 2, {1, -1}, {1, 0});
  slice(split, tail, 3, {0, 1}, {0, 3});
  slice(split, head, 3, {0, 0}, {0, 1});
  graph.node(Op::concatenate, {tail, head}, turned).axes = {3};
  Loaded loaded(graph.build(), {});
  for (const int64_t tokens : kTokens) {
    const Owned in = random_floats({1, tokens, 6}, 3);
    const Status status = loaded.run({&in}, {{1, 2, 1, 3}, {1, tokens, 2, 3}}, tokens);
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<double> last_expected, turned_expected;
    for (int64_t i = 0; i < 6; ++i) last_expected.push_back(at(in, (tokens - 1) * 6 + i));
    for (int64_t i = 0; i < tokens * 6; ++i) turned_expected.push_back(at(in, i / 3 * 3 + (i + 1) % 3));
    EXPECT_EQ(relative_error(loaded.output(0), last_expected), 0) << "T " << tokens;
    EXPECT_EQ(relative_error(loaded.output(1), turned_expected), 0) << "T " << tokens;
  }
}

TEST(XnnpackOps, multiplies_batches_of_matrices) {
  if (!has_library()) GTEST_SKIP();
  GraphBuilder graph;
  const int32_t a = graph.input({3, kT, 5}), b = graph.input({3, 5, 9}), y = graph.output({3, kT, 9});
  graph.node(Op::batch_matrix_multiply, {a, b}, y);
  Loaded loaded(graph.build(), {});
  for (const int64_t tokens : kTokens) {
    const Owned x = random_floats({3, tokens, 5}, 3), w = random_floats({3, 5, 9}, 4);
    const Status status = loaded.run({&x, &w}, {{3, tokens, 9}}, tokens);
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<double> expected;
    for (int64_t i = 0; i < 3 * tokens * 9; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < 5; ++k) sum += at(x, i / 9 * 5 + k) * at(w, (i / (9 * tokens) * 5 + k) * 9 + i % 9);
      expected.push_back(sum);
    }
    EXPECT_LT(relative_error(loaded.output(), expected), 1e-6) << "T " << tokens;
  }
}

}  // namespace
}  // namespace mote::xnnpack::test
