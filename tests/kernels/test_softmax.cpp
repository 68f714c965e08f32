#include <cmath>
#include <limits>

#include "tests/kernels/operands.h"

namespace mote::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<double> reference(const Operand& x, size_t dim, bool is_log) {
  std::vector<double> expected;
  for_each_index(x.shape(), [&](const Index& index) {
    const double value = static_cast<double>(x.at<float>(index));
    double top = -HUGE_VAL, sum = 0;
    Index other = index;
    for (int64_t i = 0; i < x.tensor.sizes[dim]; ++i) {
      other[dim] = i;
      top = std::max(top, static_cast<double>(x.at<float>(other)));
    }
    for (int64_t i = 0; i < x.tensor.sizes[dim]; ++i) {
      other[dim] = i;
      sum += std::exp(static_cast<double>(x.at<float>(other)) - top);
    }
    expected.push_back(is_log ? value - top - std::log(sum) : std::exp(value - top) / sum);
  });
  return expected;
}

CheckedCall make(const char* op, const Operand& x, int64_t dim) {
  CheckedCall call(op);
  call.input(x).integer("dim", dim).output(DType::kFloat32, x.shape());
  return call;
}

TEST(Softmax, MatchesDoubleAlongEveryDimension) {
  const Operand x = Operand::random({3, 19, 37}, 1);
  for (size_t dim = 0; dim < 3; ++dim) {
    for (const Operand& operand : {x, x.strided()}) {
      CheckedCall softmax = make("aten.softmax", operand, static_cast<int64_t>(dim));
      softmax.expect_success();
      expect_close(softmax.result().values<float>(), reference(x, dim, false), 2e-6, 1e-9);
      CheckedCall log_softmax = make("aten.log_softmax", operand, static_cast<int64_t>(dim));
      log_softmax.expect_success();
      expect_close(log_softmax.result().values<float>(), reference(x, dim, true), 1e-6, 1e-6);
    }
  }
}

TEST(Softmax, LongRowsAndLargeNumbers) {
  Operand x = Operand::random({2, 2003}, 2);
  for (int64_t i = 0; i < 4006; ++i) x.tensor.as<float>()[i] = x.tensor.as<float>()[i] * 30.0f + 1e4f;
  CheckedCall call = make("aten.softmax", x, 1);
  call.expect_success();
  expect_close(call.result().values<float>(), reference(x, 1, false), 5e-6, 1e-12);
}

TEST(Softmax, InfinitiesAndNanAsInPyTorch) {
  const Operand x = Operand::of<float>(
      {5, 3}, {-kInfinity, -kInfinity, -kInfinity, -kInfinity, 1, 1, kInfinity, 0, 0, kNan, 0, 0, 0, kNan, -kInfinity});
  const double nan = std::nan("");
  CheckedCall softmax = make("aten.softmax", x, 1);
  softmax.expect_success();
  expect_close(softmax.result().values<float>(),
               {nan, nan, nan, 0, 0.5, 0.5, nan, nan, nan, nan, nan, nan, nan, nan, nan});
  CheckedCall log_softmax = make("aten.log_softmax", x, 1);
  log_softmax.expect_success();
  const double half = -std::log(2.0);
  expect_close(log_softmax.result().values<float>(),
               {nan, nan, nan, -HUGE_VAL, half, half, nan, nan, nan, nan, nan, nan, nan, nan, nan});
}

TEST(Softmax, ScalarsAndEmptyRows) {
  CheckedCall scalar = make("aten.softmax", Operand::of<float>({}, {3}), 0);
  scalar.expect_success();
  EXPECT_EQ(scalar.result().at<float>({}), 1.0f);
  make("aten.softmax", Operand(DType::kFloat32, {4, 0}), 1).expect_success();
  make("aten.log_softmax", Operand(DType::kFloat32, {0, 4}), 1).expect_success();
}

TEST(Softmax, RefusesHostileOperands) {
  const Operand x = Operand::random({2, 3}, 1);
  for (const char* op : {"aten.softmax", "aten.log_softmax"}) {
    make(op, x, 2).expect_refusal("'dim' = 2");
    make(op, x, -1).expect_refusal("'dim' = -1");
    make(op, Operand(DType::kInt64, {2}), 0).expect_refusal("dtype int64");
    CheckedCall(op).input(x).output(DType::kFloat32, {2, 3}).expect_refusal("'dim'");
    CheckedCall(op).input(x).integer("dim", 0).output(DType::kFloat32, {3, 2}).expect_refusal("output 0");
    CheckedCall(op).input(x).integer("dim", 0).expect_refusal("0 outputs");
    CheckedCall(op).integer("dim", 0).output(DType::kFloat32, {2, 3}).expect_refusal("0 inputs");
  }
}

}  // namespace
}  // namespace mote::test
