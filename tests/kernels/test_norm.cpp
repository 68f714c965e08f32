// mote.rms_norm and mote.layer_norm against sums in double.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

std::vector<double> rms_norm(const Owned& x, const Owned* weight, double eps, double offset) {
  const auto width = static_cast<size_t>(x.tensor.size(-1));
  std::vector<double> y = to_doubles(x);
  for (size_t begin = 0; begin < y.size(); begin += width) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += y[begin + i] * y[begin + i];
    const double factor = 1 / std::sqrt(sum / static_cast<double>(width) + eps);
    for (size_t i = 0; i < width; ++i)
      y[begin + i] *= factor * (weight ? static_cast<double>(weight->as<float>()[i]) + offset : 1.0);
  }
  return y;
}

std::vector<double> layer_norm(const Owned& x, const Owned* weight, const Owned* bias, double eps) {
  const auto width = static_cast<size_t>(x.tensor.size(-1));
  std::vector<double> y = to_doubles(x);
  for (size_t begin = 0; begin < y.size(); begin += width) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < width; ++i) mean += y[begin + i] / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i)
      variance += (y[begin + i] - mean) * (y[begin + i] - mean) / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) {
      y[begin + i] = (y[begin + i] - mean) / std::sqrt(variance + eps);
      if (weight) y[begin + i] *= static_cast<double>(weight->as<float>()[i]);
      if (bias) y[begin + i] += static_cast<double>(bias->as<float>()[i]);
    }
  }
  return y;
}

TEST(RmsNorm, agrees_with_double) {
  for (const int64_t width : {1, 5, 16, 33, 512}) {
    for (const int64_t tokens : {1, 2, 7, 64, 257}) {
      for (const int64_t unit_offset : {0, 1}) {
        const Owned x = random_floats({1, tokens, width}, 1, 3.0f), weight = random_floats({width}, 2);
        OpCall call("mote.rms_norm");
        call.input(x).input(weight).output(DType::kFloat32, {1, tokens, width});
        call.number("eps", 1e-5).integers("unit_offset", {unit_offset});
        ASSERT_TRUE(call.run(3).ok());
        EXPECT_LT(
            relative_error(call.result().as<float>(), rms_norm(x, &weight, 1e-5, static_cast<double>(unit_offset))),
            1e-6);
      }
    }
  }
}

TEST(LayerNorm, agrees_with_double) {
  for (const int64_t width : {1, 5, 16, 33, 512}) {
    for (const bool has_parameters : {false, true}) {
      const Owned x = random_floats({9, width}, 1, 3.0f), weight = random_floats({width}, 2),
                  bias = random_floats({width}, 3);
      OpCall call("mote.layer_norm");
      call.input(x);
      if (has_parameters) call.input(weight).input(bias);
      call.output(DType::kFloat32, {9, width}).number("eps", 1e-5);
      ASSERT_TRUE(call.run(2).ok());
      const auto expected =
          has_parameters ? layer_norm(x, &weight, &bias, 1e-5) : layer_norm(x, nullptr, nullptr, 1e-5);
      EXPECT_LT(relative_error(call.result().as<float>(), expected), 2e-6) << width;
    }
  }
}

TEST(Norms, are_equal_to_the_bit_for_threads_and_strides) {
  const Owned x = random_floats({3, 41, 37}, 4), weight = random_floats({37}, 5);
  for (const std::string name : {"mote.rms_norm", "mote.layer_norm"}) {
    const auto run = [&](const Owned& rows, int threads) {
      OpCall call(name);
      call.input(rows).input(weight).output(DType::kFloat32, {3, 41, 37}).number("eps", 1e-6);
      EXPECT_TRUE(call.run(threads).ok());
      return std::move(call.result());
    };
    const Owned expected = run(x, 1);
    for (const int threads : {2, 4}) EXPECT_TRUE(same_bits(expected, run(x, threads)));
    EXPECT_TRUE(same_bits(expected, run(with_layout(x, {1, 0, 2}), 2)));
    EXPECT_TRUE(same_bits(expected, run(with_layout(x, {2, 1, 0}), 3)));
  }
}

TEST(Norms, keep_nan_and_accept_no_rows) {
  Owned x = random_floats({2, 8}, 1);
  x.as<float>()[3] = NAN;
  OpCall call("mote.rms_norm");
  call.input(x).output(DType::kFloat32, {2, 8}).number("eps", 1e-6);
  ASSERT_TRUE(call.run().ok());
  EXPECT_TRUE(std::isnan(call.result().as<float>()[0]));
  EXPECT_FALSE(std::isnan(call.result().as<float>()[8]));
  for (const Shape& shape : {Shape{0, 8}, Shape{8, 0}}) {
    OpCall empty("mote.layer_norm");
    empty.input(make(DType::kFloat32, shape)).output(DType::kFloat32, shape).number("eps", 1e-6);
    EXPECT_TRUE(empty.run().ok());
  }
}

TEST(Norms, refuse_what_does_not_fit) {
  const auto accepted = [](const Owned& x, const Owned& weight, const Shape& out) {
    OpCall call("mote.rms_norm");
    call.input(x).input(weight).output(DType::kFloat32, out).number("eps", 1e-6);
    return call.check().ok();
  };
  const Owned x = random_floats({2, 8}, 1), weight = random_floats({8}, 1);
  EXPECT_TRUE(accepted(x, weight, {2, 8}));
  EXPECT_FALSE(accepted(x, random_floats({7}, 1), {2, 8}));
  EXPECT_FALSE(accepted(x, random_floats({1, 8}, 1), {2, 8}));
  EXPECT_FALSE(accepted(x, weight, {2, 9}));
  EXPECT_FALSE(accepted(x, weight, {16}));
  EXPECT_FALSE(accepted(make(DType::kInt64, {2, 8}), weight, {2, 8}));
  EXPECT_FALSE(accepted(make(DType::kFloat32, {}), weight, {}));
  OpCall no_eps("mote.rms_norm");
  no_eps.input(x).output(DType::kFloat32, {2, 8});
  EXPECT_FALSE(no_eps.check().ok());
}

}  // namespace
}  // namespace mote::test
