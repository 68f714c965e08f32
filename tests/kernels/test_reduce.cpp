#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/kernels/operands.h"

namespace mote::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Shape kept_shape(const Shape& shape, const std::vector<int64_t>& dims, bool keepdim) {
  const std::set<int64_t> reduced(dims.begin(), dims.end());
  Shape kept;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const bool is_reduced = reduced.count(static_cast<int64_t>(dim)) != 0;
    if (!is_reduced || keepdim) kept.push_back(is_reduced ? 1 : shape[dim]);
  }
  return kept;
}

// The elements that meet in each output, in double.
std::vector<std::vector<double>> groups(const Operand& x, const std::vector<int64_t>& dims) {
  std::map<Index, std::vector<double>> by_kept;
  for_each_index(x.shape(), [&](const Index& index) {
    Index kept = index;
    for (const int64_t dim : dims) kept[static_cast<size_t>(dim)] = 0;
    by_kept[kept].push_back(static_cast<double>(x.at<float>(index)));
  });
  std::vector<std::vector<double>> result;
  for (auto& [kept, values] : by_kept) result.push_back(values);
  return result;
}

double reference(const std::string& op, const std::vector<double>& values) {
  double sum = 0, product = 1, high = -HUGE_VAL, low = HUGE_VAL;
  for (const double value : values) {
    sum += value;
    product *= value;
    high = std::fmax(high, value);
    low = std::fmin(low, value);
  }
  if (op == "aten.sum") return sum;
  if (op == "aten.mean") return sum / static_cast<double>(values.size());
  if (op == "aten.prod") return product;
  return op == "aten.amax" ? high : low;
}

void expect_reduction(const std::string& op, const Operand& x, const std::vector<int64_t>& dims, bool keepdim) {
  CheckedCall call(op);
  call.input(x).integers("dims", dims).integer("keepdim", keepdim ? 1 : 0);
  call.output(DType::kFloat32, kept_shape(x.shape(), dims, keepdim));
  call.expect_success();
  std::vector<double> expected;
  for (const auto& values : groups(x, dims)) expected.push_back(reference(op, values));
  expect_close(call.result().values<float>(), expected, 1e-5, 1e-4);
}

TEST(Reduce, MatchesDoubleOverEverySetOfDimensions) {
  const Operand x = Operand::random({3, 5, 37}, 1);
  for (const char* op : {"aten.sum", "aten.mean", "aten.amax", "aten.amin", "aten.prod"}) {
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}) {
      expect_reduction(op, x, dims, false);
      expect_reduction(op, x.strided(), dims, true);
    }
  }
}

TEST(Reduce, SumsLongRowsAndExpandedOnes) {
  expect_reduction("aten.sum", Operand::random({3, 70001}, 2), {1}, false);
  expect_reduction("aten.mean", Operand::random({7, 1}, 3).expanded(1, 1000), {1}, false);
  expect_reduction("aten.amax", Operand::random({700, 3}, 4), {0}, false);
}

TEST(Reduce, RowsDoNotDependOnHowManyThereAre) {
  const Operand x = Operand::random({9, 523}, 5);
  CheckedCall many("aten.sum");
  many.input(x).integers("dims", {1}).output(DType::kFloat32, {9});
  many.expect_success();
  for (int64_t row = 0; row < 9; ++row) {
    Operand one = x;
    one.tensor.data = x.tensor.as<float>() + row * 523;
    one.tensor.sizes[0] = 1;
    CheckedCall call("aten.sum");
    call.input(one.strided()).integers("dims", {1}).output(DType::kFloat32, {1});
    call.expect_success();
    EXPECT_EQ(call.result().at<float>({0}), many.result().at<float>({row}));
  }
}

TEST(Reduce, ExtremesKeepNan) {
  std::vector<float> values(40, 1.0f);
  values[33] = kNan;
  values[2] = -kInfinity;
  for (const char* op : {"aten.amax", "aten.amin", "aten.sum"}) {
    CheckedCall call(op);
    call.input(Operand::of<float>({40}, values)).integers("dims", {0}).output(DType::kFloat32, {});
    call.expect_success();
    EXPECT_TRUE(std::isnan(call.result().at<float>({}))) << op;
  }
}

TEST(Reduce, ExtremesOfInfinities) {
  CheckedCall call("aten.amax");
  call.input(Operand::of<float>({3}, {-kInfinity, -kInfinity, -kInfinity}))
      .integers("dims", {0})
      .output(DType::kFloat32, {});
  call.expect_success();
  EXPECT_EQ(call.result().at<float>({}), -kInfinity);
}

TEST(Reduce, IntegersAndBoolsSumToInt64) {
  CheckedCall bools("aten.sum");
  bools.input(Operand::of<uint8_t>({2, 3}, {1, 0, 1, 1, 1, 1})).integers("dims", {1}).output(DType::kInt64, {2});
  bools.expect_success();
  EXPECT_EQ(bools.result().values<int64_t>(), (std::vector<int64_t>{2, 3}));
  CheckedCall ints("aten.prod");
  ints.input(Operand::of<int32_t>({3}, {100000, 100000, -2})).integers("dims", {0}).output(DType::kInt64, {});
  ints.expect_success();
  EXPECT_EQ(ints.result().at<int64_t>({}), -20000000000);
  CheckedCall longs("aten.amin");
  longs.input(Operand::of<int64_t>({2, 2}, {5, -7, INT64_MIN, 3})).integers("dims", {0}).output(DType::kInt64, {2});
  longs.expect_success();
  EXPECT_EQ(longs.result().values<int64_t>(), (std::vector<int64_t>{INT64_MIN, -7}));
}

TEST(Reduce, AnyAndAll) {
  const Operand x = Operand::of<float>({4, 2}, {0, 0, 0, 2, kNan, 1, -0.0f, 0});
  CheckedCall any("aten.any");
  any.input(x).integers("dims", {1}).output(DType::kBool, {4});
  any.expect_success();
  EXPECT_EQ(any.result().values<uint8_t>(), (std::vector<uint8_t>{0, 1, 1, 0}));
  CheckedCall all("aten.all");
  all.input(x.strided()).integers("dims", {1}).output(DType::kBool, {4});
  all.expect_success();
  EXPECT_EQ(all.result().values<uint8_t>(), (std::vector<uint8_t>{0, 0, 1, 0}));
}

TEST(Reduce, EmptySumsAndMeans) {
  CheckedCall sum("aten.sum");
  sum.input(Operand(DType::kFloat32, {2, 0})).integers("dims", {1}).output(DType::kFloat32, {2});
  sum.expect_success();
  EXPECT_EQ(sum.result().values<float>(), (std::vector<float>{0, 0}));
  CheckedCall mean("aten.mean");
  mean.input(Operand(DType::kFloat32, {0})).integers("dims", {0}).output(DType::kFloat32, {});
  mean.expect_success();
  EXPECT_TRUE(std::isnan(mean.result().at<float>({})));
  CheckedCall nothing("aten.amax");
  nothing.input(Operand(DType::kFloat32, {0, 4})).integers("dims", {1}).output(DType::kFloat32, {0});
  nothing.expect_success();
}

TEST(Reduce, RefusesHostileOperands) {
  const Operand x = Operand::random({2, 3}, 1);
  const auto call = [&](const char* op, const std::vector<int64_t>& dims, DType dtype, const Shape& shape) {
    CheckedCall made(op);
    made.input(x).integers("dims", dims).output(dtype, shape);
    return made;
  };
  call("aten.sum", {2}, DType::kFloat32, {2}).expect_refusal("'dims' holds 2");
  call("aten.sum", {-1}, DType::kFloat32, {2}).expect_refusal("'dims' holds -1");
  call("aten.sum", {1, 1}, DType::kFloat32, {2}).expect_refusal("repeats 1");
  call("aten.sum", {1}, DType::kFloat32, {3}).expect_refusal("output 0");
  call("aten.sum", {1}, DType::kFloat32, {2, 1}).expect_refusal("output 0");
  call("aten.sum", {1}, DType::kInt64, {2}).expect_refusal("output 0");
  call("aten.any", {1}, DType::kFloat32, {2}).expect_refusal("output 0");
  call("aten.sum", {1}, DType::kFloat32, {2}).integer("keepdim", 2).expect_refusal("keepdim");
  call("aten.sum", {1}, DType::kFloat32, {2}).input(x).expect_refusal("2 inputs");
  CheckedCall("aten.sum").input(x).output(DType::kFloat32, {2}).expect_refusal("'dims' is missing");
  CheckedCall("aten.sum").absent_input().integers("dims", {}).output(DType::kFloat32, {}).expect_refusal("absent");
  CheckedCall("aten.amax")
      .input(Operand(DType::kFloat32, {2, 0}))
      .integers("dims", {1})
      .output(DType::kFloat32, {2})
      .expect_refusal("size 0");
  CheckedCall("aten.mean")
      .input(Operand(DType::kInt64, {2}))
      .integers("dims", {0})
      .output(DType::kFloat32, {})
      .expect_refusal("dtype int64: must be float32");
  Operand quantised = x, huge = x;
  quantised.tensor.bits = 4;
  CheckedCall("aten.sum")
      .input(quantised)
      .integers("dims", {1})
      .output(DType::kFloat32, {2})
      .expect_refusal("quantised");
  huge.tensor.sizes[0] = INT64_MAX;
  CheckedCall("aten.sum").input(huge).integers("dims", {1}).output(DType::kFloat32, {2}).expect_refusal("sizes[0]");
}

TEST(Cumsum, MatchesDoubleAlongEveryDimension) {
  const Operand x = Operand::random({3, 11, 5}, 9);
  for (int64_t dim = 0; dim < 3; ++dim) {
    std::vector<double> expected;
    for_each_index(x.shape(), [&](const Index& index) {
      double sum = 0;
      Index other = index;
      for (int64_t i = 0; i <= index[static_cast<size_t>(dim)]; ++i) {
        other[static_cast<size_t>(dim)] = i;
        sum += static_cast<double>(x.at<float>(other));
      }
      expected.push_back(sum);
    });
    CheckedCall call("aten.cumsum");
    call.input(x.strided()).integer("dim", dim).output(DType::kFloat32, {3, 11, 5});
    call.expect_success();
    expect_close(call.result().values<float>(), expected);
  }
}

TEST(Cumsum, IntegersBoolsAndScalars) {
  CheckedCall bools("aten.cumsum");
  bools.input(Operand::of<uint8_t>({4}, {1, 1, 0, 1})).integer("dim", 0).output(DType::kInt64, {4});
  bools.expect_success();
  EXPECT_EQ(bools.result().values<int64_t>(), (std::vector<int64_t>{1, 2, 2, 3}));
  CheckedCall scalar("aten.cumsum");
  scalar.input(Operand::of<int64_t>({}, {7})).integer("dim", 0).output(DType::kInt64, {});
  scalar.expect_success();
  EXPECT_EQ(scalar.result().at<int64_t>({}), 7);
  CheckedCall("aten.cumsum")
      .input(Operand(DType::kInt64, {2}))
      .integer("dim", 1)
      .output(DType::kInt64, {2})
      .expect_refusal("'dim' = 1");
  CheckedCall("aten.cumsum")
      .input(Operand(DType::kInt64, {2}))
      .integer("dim", 0)
      .output(DType::kInt64, {3})
      .expect_refusal("output 0");
  CheckedCall("aten.cumsum")
      .input(Operand(DType::kInt8, {2}))
      .integer("dim", 0)
      .output(DType::kInt64, {2})
      .expect_refusal("dtype int8");
}

}  // namespace
}  // namespace mote::test
