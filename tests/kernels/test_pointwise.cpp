// Elementwise ops against the C library in double; broadcasting, strides, dtypes.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

struct Unary {
  const char* name;
  double (*reference)(double);
};

const std::vector<Unary> kUnary = {
    {"neg", [](double x) { return -x; }},
    {"abs", [](double x) { return std::fabs(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"expm1", [](double x) { return std::expm1(x); }},
    {"log", [](double x) { return std::log(x); }},
    {"log1p", [](double x) { return std::log1p(x); }},
    {"log2", [](double x) { return std::log2(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"reciprocal", [](double x) { return 1 / x; }},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
    {"relu", [](double x) { return x < 0 ? 0 : x; }},
    {"erf", [](double x) { return std::erf(x); }},
    {"floor", [](double x) { return std::floor(x); }},
    {"ceil", [](double x) { return std::ceil(x); }},
    {"round", [](double x) { return std::nearbyint(x); }},
    {"sign", [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); }},
    {"softplus", [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); }},
    {"square", [](double x) { return x * x; }},
    {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"leaky_relu", [](double x) { return x > 0 ? x : x * 0.01; }},
    {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
};

TEST(Pointwise, unary_ops_agree_with_double) {
  std::vector<float> special = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 1.5f, 2.5f, 1e-30f, -1e-30f, 25.0f, NAN};
  const Owned random = random_floats({989}, 1, 3.0f);
  special.insert(special.end(), random.as<float>(), random.as<float>() + random.count());
  const Owned x = floats({8, 125}, special);
  for (const Unary& op : kUnary) {
    OpCall call(std::string("aten.") + op.name);
    call.input(x).output(DType::kFloat32, {8, 125});
    const Status status = call.run(3);
    ASSERT_TRUE(status.ok()) << op.name << status.message();
    for (size_t i = 0; i < special.size(); ++i) {
      const double expected = op.reference(static_cast<double>(special[i])),
                   actual = static_cast<double>(call.result().as<float>()[i]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(actual)) << op.name << " " << special[i];
      } else if (std::isinf(expected)) {
        EXPECT_EQ(expected, actual) << op.name;
      } else {
        EXPECT_NEAR(expected, actual, std::fabs(expected) * 5e-7 + 1e-37) << op.name << " " << special[i];
      }
    }
  }
}

TEST(Pointwise, tanh_gelu_and_clamp_take_attributes) {
  const Owned x = random_floats({300}, 2, 2.0f);
  OpCall gelu("aten.gelu");
  gelu.input(x).output(DType::kFloat32, {300}).text("approximate", "tanh");
  ASSERT_TRUE(gelu.run().ok());
  OpCall low("aten.clamp"), both("aten.clamp");
  low.input(x).output(DType::kFloat32, {300}).number("min", -0.5);
  both.input(x).output(DType::kFloat32, {300}).number("min", -0.5).number("max", 0.25);
  ASSERT_TRUE(low.run().ok());
  ASSERT_TRUE(both.run().ok());
  for (int i = 0; i < 300; ++i) {
    const auto value = static_cast<double>(x.as<float>()[i]);
    const double expected =
        0.5 * value * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (value + 0.044715 * value * value * value)));
    EXPECT_NEAR(expected, static_cast<double>(gelu.result().as<float>()[i]), 1e-6);
    EXPECT_EQ(std::max(x.as<float>()[i], -0.5f), low.result().as<float>()[i]);
    EXPECT_EQ(std::clamp(x.as<float>()[i], -0.5f, 0.25f), both.result().as<float>()[i]);
  }
}

struct Binary {
  const char* name;
  double (*reference)(double, double);
  DType output = DType::kFloat32;
};

double python_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

const std::vector<Binary> kBinary = {
    {"add", [](double a, double b) { return a + b; }},
    {"sub", [](double a, double b) { return a - b; }},
    {"mul", [](double a, double b) { return a * b; }},
    {"div", [](double a, double b) { return a / b; }},
    {"pow", [](double a, double b) { return std::pow(a, b); }},
    {"maximum", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }},
    {"minimum", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }},
    {"remainder", python_remainder},
    {"floor_divide", [](double a, double b) { return b == 0 ? a / b : std::floor(a / b); }},
    {"fmod", [](double a, double b) { return std::fmod(a, b); }},
    {"eq", [](double a, double b) { return a == b ? 1.0 : 0.0; }, DType::kBool},
    {"ne", [](double a, double b) { return a != b ? 1.0 : 0.0; }, DType::kBool},
    {"lt", [](double a, double b) { return a < b ? 1.0 : 0.0; }, DType::kBool},
    {"le", [](double a, double b) { return a <= b ? 1.0 : 0.0; }, DType::kBool},
    {"gt", [](double a, double b) { return a > b ? 1.0 : 0.0; }, DType::kBool},
    {"ge", [](double a, double b) { return a >= b ? 1.0 : 0.0; }, DType::kBool},
    {"logical_and", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, DType::kBool},
    {"logical_or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, DType::kBool},
    {"logical_xor", [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }, DType::kBool},
};

const std::vector<float> kValues = {-3.5f, -2.0f, -1.0f, -0.25f, 0.0f, 0.5f, 1.0f, 2.0f, 3.0f, 7.25f, NAN};

TEST(Pointwise, binary_ops_agree_with_double_over_every_pair) {
  const auto n = static_cast<int64_t>(kValues.size());
  const Owned a = floats({n, 1}, kValues), b = floats({n}, kValues);
  for (const Binary& op : kBinary) {
    OpCall call(std::string("aten.") + op.name);
    call.input(a).input(b).output(op.output, {n, n});
    const Status status = call.run(2);
    ASSERT_TRUE(status.ok()) << op.name << status.message();
    const std::vector<double> actual = to_doubles(call.result());
    for (size_t i = 0; i < actual.size(); ++i) {
      const float x = kValues[i / kValues.size()], y = kValues[i % kValues.size()];
      const double expected = op.reference(static_cast<double>(x), static_cast<double>(y));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(actual[i])) << op.name << " " << x << " " << y;
      } else if (std::isinf(expected)) {
        EXPECT_EQ(expected, actual[i]) << op.name << " " << x << " " << y;
      } else {
        EXPECT_NEAR(expected, actual[i], std::fabs(expected) * 2e-7) << op.name << " " << x << " " << y;
      }
    }
  }
}

TEST(Pointwise, integers_divide_and_wrap_like_python_without_traps) {
  const std::vector<int64_t> values = {INT64_MIN, -7, -2, -1, 0, 1, 2, 7, INT64_MAX};
  const auto n = static_cast<int64_t>(values.size());
  const Owned a = integers({n, 1}, values), b = integers({n}, values);
  for (const std::string name : {"add", "sub", "mul", "pow", "maximum", "minimum", "remainder", "floor_divide", "fmod",
                                 "bitwise_and", "bitwise_or"}) {
    OpCall call("aten." + name);
    call.input(a).input(b).output(DType::kInt64, {n, n});
    ASSERT_TRUE(call.run().ok()) << name;
    const int64_t* y = call.result().as<int64_t>();
    const auto at = [&](int64_t i, int64_t j) { return y[i * n + j]; };
    if (name == "floor_divide") {
      EXPECT_EQ(-4, at(1, 6));
      EXPECT_EQ(3, at(1, 2));
      EXPECT_EQ(INT64_MIN, at(0, 3));
      EXPECT_EQ(0, at(7, 4));
    }
    if (name == "remainder") {
      EXPECT_EQ(1, at(1, 6));
      EXPECT_EQ(-1, at(7, 2));
      EXPECT_EQ(0, at(0, 3));
    }
    if (name == "add") { EXPECT_EQ(INT64_MIN, at(8, 5)); }
    if (name == "pow") { EXPECT_EQ(49, at(7, 6)); }
  }
}

TEST(Pointwise, integer_and_bool_variants) {
  OpCall division("aten.div");
  division.input(integers({2}, {7, -1})).input(integers({2}, {2, 4})).output(DType::kFloat32, {2});
  ASSERT_TRUE(division.run().ok());
  EXPECT_EQ(3.5f, division.result().as<float>()[0]);
  OpCall inverse("aten.bitwise_not");
  inverse.input(bools({2}, {1, 0})).output(DType::kBool, {2});
  ASSERT_TRUE(inverse.run().ok());
  EXPECT_EQ((std::vector<double>{0, 1}), to_doubles(inverse.result()));
  OpCall clamp("aten.clamp");
  clamp.input(integers({3}, {-5, 3, 90})).output(DType::kInt64, {3}).integers("min", {0}).number("max", 1e300);
  ASSERT_TRUE(clamp.run().ok());
  EXPECT_EQ((std::vector<double>{0, 3, 90}), to_doubles(clamp.result()));
  OpCall nan("aten.isnan");
  nan.input(floats({2}, {NAN, 1})).output(DType::kBool, {2});
  ASSERT_TRUE(nan.run().ok());
  EXPECT_EQ((std::vector<double>{1, 0}), to_doubles(nan.result()));
  OpCall opposite("aten.neg");
  opposite.input(integers({1}, {INT64_MIN})).output(DType::kInt64, {1});
  EXPECT_TRUE(opposite.run().ok());
}

TEST(Pointwise, broadcasts_strided_inputs) {
  const Owned a = random_floats({3, 1, 70, 11}, 1), b = random_floats({5, 1, 11}, 2);
  const Owned strided = with_layout(a, {3, 1, 0, 2});
  const auto run = [&](const Owned& x, int threads) {
    OpCall call("aten.sub");
    call.input(x).input(b).output(DType::kFloat32, {3, 5, 70, 11});
    EXPECT_TRUE(call.run(threads).ok());
    return std::move(call.result());
  };
  const Owned expected = run(a, 1);
  for (int64_t i = 0; i < expected.count(); ++i) {
    const int64_t d = i % 11, t = i / 11 % 70, h = i / 770 % 5, n = i / 3850;
    ASSERT_EQ(a.as<float>()[(n * 70 + t) * 11 + d] - b.as<float>()[h * 11 + d], expected.as<float>()[i]);
  }
  for (const int threads : {1, 2, 4}) EXPECT_TRUE(same_bits(expected, run(strided, threads)));
}

TEST(Pointwise, accepts_scalars_and_empty_tensors) {
  OpCall scalar("aten.mul");
  scalar.input(random_floats({4, 300}, 1)).input(floats({}, {2})).output(DType::kFloat32, {4, 300});
  EXPECT_TRUE(scalar.run(2).ok());
  OpCall empty("aten.add");
  empty.input(make(DType::kFloat32, {0, 3})).input(floats({1}, {1})).output(DType::kFloat32, {0, 3});
  EXPECT_TRUE(empty.run().ok());
  OpCall two("aten.add");
  two.input(floats({}, {2})).input(floats({}, {3})).output(DType::kFloat32, {});
  ASSERT_TRUE(two.run().ok());
  EXPECT_EQ(5.0f, two.result().as<float>()[0]);
}

TEST(Pointwise, refuses_what_does_not_fit) {
  const auto accepted = [](const Owned& a, const Owned& b, DType dtype, const Shape& out) {
    OpCall call("aten.add");
    call.input(a).input(b).output(dtype, out);
    return call.check().ok();
  };
  const Owned x = random_floats({2, 3}, 1);
  EXPECT_TRUE(accepted(x, x, DType::kFloat32, {2, 3}));
  EXPECT_FALSE(accepted(x, random_floats({2, 4}, 1), DType::kFloat32, {2, 3}));
  EXPECT_FALSE(accepted(x, random_floats({3, 3}, 1), DType::kFloat32, {3, 3}));
  EXPECT_FALSE(accepted(x, x, DType::kFloat32, {3, 2}));
  EXPECT_FALSE(accepted(x, x, DType::kInt64, {2, 3}));
  EXPECT_FALSE(accepted(x, make(DType::kInt64, {2, 3}), DType::kFloat32, {2, 3}));
  EXPECT_FALSE(accepted(make(DType::kInt8, {2, 3}), make(DType::kInt8, {2, 3}), DType::kInt8, {2, 3}));
  EXPECT_FALSE(accepted(random_tiles({16, 32}, 8, 32, 1).owned, x, DType::kFloat32, {16, 32}));
  OpCall one("aten.add");
  one.input(x).output(DType::kFloat32, {2, 3});
  EXPECT_FALSE(one.check().ok());
  OpCall absent("aten.add");
  absent.input(x).absent().output(DType::kFloat32, {2, 3});
  EXPECT_FALSE(absent.check().ok());
}

}  // namespace
}  // namespace mote::test
