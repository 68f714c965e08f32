// Elementary functions against the C library in double, and float16 conversion over all its values.
#include "kernels/support/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/support/float_bits.h"

namespace mote::test {
namespace {

// Distance in units of the last place of a float32.
double ulps(float actual, double expected) {
  const float rounded = static_cast<float>(expected);
  if (std::isnan(expected) || std::isinf(rounded)) {
    return (std::isnan(actual) && std::isnan(expected)) || actual == rounded ? 0 : 1e9;
  }
  const double unit =
      static_cast<double>(std::nextafter(std::fabs(rounded), INFINITY)) - static_cast<double>(std::fabs(rounded));
  return std::fabs(static_cast<double>(actual) - expected) / unit;
}

template <typename Function, typename Reference>
double worst(double low, double high, Function function, Reference reference) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> uniform(low, high);
  double largest = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto x = static_cast<float>(uniform(generator));
    largest = std::max(largest, ulps(function(x), reference(static_cast<double>(x))));
  }
  return largest;
}

float narrow(double x) { return static_cast<float>(x); }

TEST(Math, exponential_is_close_everywhere) {
  const auto reference = [](double x) { return std::exp(x); };
  EXPECT_LT(worst(-87, 88.7, [](float x) { return math::exp(x); }, reference), 1.5);
  EXPECT_LT(worst(-104, -87, [](float x) { return math::exp(x); }, reference), 1.01);
  EXPECT_LT(worst(
                -700, 700, [](float x) { return narrow(math::log(math::exp(static_cast<double>(x)))); },
                [](double x) { return x; }),
            1);
  EXPECT_EQ(0.0f, math::exp(-INFINITY));
  EXPECT_EQ(INFINITY, math::exp(INFINITY));
  EXPECT_EQ(1.0f, math::exp(0.0f));
  EXPECT_TRUE(std::isnan(math::exp(std::nanf(""))));
}

TEST(Math, sine_and_cosine_are_right_for_large_angles) {
#if defined(_WIN32)
  GTEST_SKIP() << "this C library's own sine, the oracle, is wrong for large angles";
#endif
  for (const double range : {1.0, 100.0, 1e6, 1e7, 1e12, 1e38}) {
    EXPECT_LT(
        worst(
            -range, range, [](float x) { return narrow(math::sin_cos(x).sin); }, [](double x) { return std::sin(x); }),
        0.51);
    EXPECT_LT(
        worst(
            -range, range, [](float x) { return narrow(math::sin_cos(x).cos); }, [](double x) { return std::cos(x); }),
        0.51);
  }
  EXPECT_TRUE(std::isnan(math::sin_cos(INFINITY).sin));
  EXPECT_TRUE(std::isnan(math::sin_cos(std::nanf("")).cos));
  EXPECT_EQ(1.0, math::sin_cos(0.0f).cos);
}

TEST(Math, other_functions_are_close) {
  EXPECT_LT(worst(-12, 12, [](float x) { return math::tanh(x); }, [](double x) { return std::tanh(x); }), 0.51);
  EXPECT_LT(worst(-1e-3, 1e-3, [](float x) { return math::tanh(x); }, [](double x) { return std::tanh(x); }), 0.51);
  EXPECT_LT(worst(-7, 7, [](float x) { return narrow(math::erf(x)); }, [](double x) { return std::erf(x); }), 0.51);
  EXPECT_LT(worst(0, 1e30, [](float x) { return narrow(math::log(x)); }, [](double x) { return std::log(x); }), 0.51);
  EXPECT_LT(worst(0.5, 2, [](float x) { return narrow(math::log(x)); }, [](double x) { return std::log(x); }), 0.51);
  EXPECT_LT(
      worst(-0.999, 5, [](float x) { return narrow(math::log1p(x)); }, [](double x) { return std::log1p(x); }), 0.51);
  EXPECT_LT(worst(
                -2, 2, [](float x) { return narrow(math::expm1(static_cast<double>(x))); },
                [](double x) { return std::expm1(x); }),
            0.51);
  EXPECT_LT(worst(
                -1e-6, 1e-6, [](float x) { return narrow(math::expm1(static_cast<double>(x))); },
                [](double x) { return std::expm1(x); }),
            0.51);
  EXPECT_LT(
      worst(-80, 80, [](float x) { return math::sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }), 3);
  EXPECT_TRUE(std::isnan(math::tanh(std::nanf(""))));
  EXPECT_EQ(-1.0f, math::tanh(-INFINITY));
  EXPECT_TRUE(std::isnan(math::erf(std::nan(""))));
}

TEST(Math, powers_follow_c) {
  const double values[] = {-INFINITY, -1e30, -3.0, -2.0, -1.0, -0.5, -0.0,     0.0,
                           0.5,       1.0,   2.0,  2.5,  7.0,  1e30, INFINITY, NAN};
  for (const double x : values) {
    for (const double y : values) EXPECT_LT(ulps(narrow(math::pow(x, y)), std::pow(x, y)), 0.51) << x << " " << y;
  }
  EXPECT_LT(worst(
                0.01, 90, [](float x) { return narrow(math::pow(x, 7.3)); }, [](double x) { return std::pow(x, 7.3); }),
            0.51);
}

TEST(Math, rounds_halves_to_even) {
  for (const float x : {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 8388607.5f, 8388609.0f, -1e30f, 3.2f, -0.0f}) {
    EXPECT_EQ(std::nearbyint(x), math::round_even(x)) << x;
    EXPECT_EQ(std::signbit(std::nearbyint(x)), std::signbit(math::round_even(x))) << x;
  }
}

TEST(FloatBits, every_float16_survives) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float16_to_float32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_GT(bits & 0x7fffu, 0x7c00u);
    } else {
      EXPECT_EQ(bits, float32_to_float16(value));
    }
  }
}

TEST(FloatBits, float16_rounds_to_nearest_even) {
  const auto value = [](int bits) { return static_cast<double>(float16_to_float32(static_cast<uint16_t>(bits))); };
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double middle = (value(bits) + value(bits + 1)) / 2;
    EXPECT_EQ(bits + bits % 2, float32_to_float16(narrow(middle))) << bits;
    EXPECT_EQ(bits, float32_to_float16(std::nextafter(narrow(middle), 0.0f)));
    EXPECT_EQ(bits + 1, float32_to_float16(std::nextafter(narrow(middle), INFINITY)));
  }
  EXPECT_EQ(0x7c00, float32_to_float16(65520.0f));
  EXPECT_EQ(0x7bff, float32_to_float16(65519.0f));
  EXPECT_EQ(0xfc00, float32_to_float16(-INFINITY));
}

TEST(FloatBits, bfloat16_rounds_to_nearest_even) {
  EXPECT_EQ(0x3f80, float32_to_bfloat16(1.00390625f));
  EXPECT_EQ(0x3f82, float32_to_bfloat16(1.01171875f));
  EXPECT_EQ(1.0f, bfloat16_to_float32(0x3f80));
  EXPECT_TRUE(std::isnan(bfloat16_to_float32(float32_to_bfloat16(std::nanf("")))));
}

}  // namespace
}  // namespace mote::test
