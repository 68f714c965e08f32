#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/operands.h"

namespace mote::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Whether a sorts before b, both with NaN as the largest.
bool before(double a, double b, bool descending) {
  if (std::isnan(a) || std::isnan(b))
    return descending ? std::isnan(a) && !std::isnan(b) : !std::isnan(a) && std::isnan(b);
  return descending ? a > b : a < b;
}

// Positions of one line in stable order.
std::vector<int64_t> stable_order(const std::vector<double>& line, bool descending) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < line.size(); ++i) order.push_back(static_cast<int64_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return before(line[static_cast<size_t>(a)], line[static_cast<size_t>(b)], descending);
  });
  return order;
}

// Few different values, so that ties are common; some NaN.
Operand with_ties(const Shape& shape, uint32_t seed) {
  Operand x = Operand::random(shape, seed);
  for (int64_t i = 0; i < x.tensor.num_elements(); ++i) {
    float& value = x.tensor.as<float>()[i];
    value = value > 1.5f ? kNan : std::floor(value * 3.0f);
  }
  return x;
}

// Compares values and indices of sort, topk, max or min with the first `count` of each line in stable order.
template <typename T>
void expect_order(CheckedCall& call, const Operand& x, size_t dim, bool descending, int64_t count) {
  Shape shape = x.shape();
  shape[dim] = count;
  Operand values = call.result(0), indices = call.result(1);
  for_each_index(shape, [&](const Index& index) {
    std::vector<double> line;
    Index other = index;
    for (int64_t i = 0; i < x.tensor.sizes[dim]; ++i) {
      other[dim] = i;
      line.push_back(static_cast<double>(x.at<T>(other)));
    }
    const int64_t expected = stable_order(line, descending)[static_cast<size_t>(index[dim])];
    EXPECT_EQ(indices.at<int64_t>(index), expected);
    other[dim] = expected;
    const T found = values.at<T>(index), value = x.at<T>(other);
    EXPECT_EQ(std::memcmp(&found, &value, sizeof(T)), 0);
  });
}

TEST(Sort, IsStableWithNanLargestAlongEveryDimension) {
  const Operand x = with_ties({4, 33, 7}, 1);
  for (size_t dim = 0; dim < 3; ++dim) {
    for (const bool descending : {false, true}) {
      CheckedCall call("aten.sort");
      call.input(dim == 1 ? x.strided() : x)
          .integer("dim", static_cast<int64_t>(dim))
          .integer("descending", descending);
      call.output(DType::kFloat32, x.shape()).output(DType::kInt64, x.shape());
      call.expect_success();
      expect_order<float>(call, x, dim, descending, x.tensor.sizes[dim]);
    }
  }
}

TEST(Sort, IntegersAndLongLines) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 5000; ++i) values.push_back((i * 7919 + 13) % 101 - 50);
  values[77] = INT64_MIN;
  const Operand x = Operand::of<int64_t>({2, 2500}, values);
  CheckedCall call("aten.sort");
  call.input(x)
      .integer("dim", 1)
      .integer("descending", 0)
      .output(DType::kInt64, {2, 2500})
      .output(DType::kInt64, {2, 2500});
  call.expect_success();
  EXPECT_EQ(call.result(0).at<int64_t>({0, 0}), INT64_MIN);
  expect_order<int64_t>(call, x, 1, false, 2500);
}

TEST(TopK, PicksTheFirstOfEquals) {
  const Operand x = with_ties({5, 64}, 3);
  for (const int64_t k : {0, 1, 8, 63, 64}) {
    for (const bool largest : {true, false}) {
      CheckedCall call("aten.topk");
      call.input(k == 8 ? x.strided() : x).integer("k", k).integer("dim", 1).integer("largest", largest);
      call.output(DType::kFloat32, {5, k}).output(DType::kInt64, {5, k});
      call.expect_success();
      expect_order<float>(call, x, 1, largest, k);
    }
  }
}

TEST(TopK, AlongTheFirstDimension) {
  const Operand x = with_ties({9, 3}, 4);
  CheckedCall call("aten.topk");
  call.input(x).integer("k", 4).integer("dim", 0).output(DType::kFloat32, {4, 3}).output(DType::kInt64, {4, 3});
  call.expect_success();
  expect_order<float>(call, x, 0, true, 4);
}

TEST(Extreme, ArgmaxMaxAndMinTakeTheFirstAndKeepNan) {
  const Operand x = Operand::of<float>(
      {4, 4}, {1, 3, 3, 2, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 0, kNan, 5, kNan, 4, 1, 1, 4});
  CheckedCall argmax("aten.argmax");
  argmax.input(x.strided()).integer("dim", 1).integer("keepdim", 0).output(DType::kInt64, {4});
  argmax.expect_success();
  EXPECT_EQ(argmax.result().values<int64_t>(), (std::vector<int64_t>{1, 0, 1, 0}));
  CheckedCall max("aten.max");
  max.input(x).integer("dim", 1).integer("keepdim", 1).output(DType::kFloat32, {4, 1}).output(DType::kInt64, {4, 1});
  max.expect_success();
  EXPECT_EQ(max.result(1).values<int64_t>(), (std::vector<int64_t>{1, 0, 1, 0}));
  EXPECT_TRUE(std::isnan(max.result(0).at<float>({2, 0})));
  EXPECT_EQ(max.result(0).at<float>({0, 0}), 3.0f);
  CheckedCall min("aten.min");
  min.input(x).integer("dim", 1).integer("keepdim", 0).output(DType::kFloat32, {4}).output(DType::kInt64, {4});
  min.expect_success();
  EXPECT_EQ(min.result(1).values<int64_t>(), (std::vector<int64_t>{0, 0, 1, 1}));
}

TEST(Extreme, ManyLinesAlongTheFirstDimension) {
  const Operand x = Operand::random({6, 3001}, 6);
  CheckedCall max("aten.max");
  max.input(x)
      .integer("dim", 0)
      .integer("keepdim", 1)
      .output(DType::kFloat32, {1, 3001})
      .output(DType::kInt64, {1, 3001});
  max.expect_success();
  expect_order<float>(max, x, 0, true, 1);
}

TEST(Extreme, Scalars) {
  CheckedCall call("aten.argmax");
  call.input(Operand::of<int64_t>({}, {7})).integer("dim", 0).integer("keepdim", 0).output(DType::kInt64, {});
  call.expect_success();
  EXPECT_EQ(call.result().at<int64_t>({}), 0);
}

TEST(Sort, RefusesHostileOperands) {
  const Operand x = Operand::random({2, 3}, 1);
  const auto topk = [&](int64_t k, const Shape& shape) {
    CheckedCall call("aten.topk");
    call.input(x).integer("k", k).integer("dim", 1).output(DType::kFloat32, shape).output(DType::kInt64, shape);
    return call;
  };
  topk(4, {2, 4}).expect_refusal("'k' = 4");
  topk(-1, {2, 0}).expect_refusal("'k' = -1");
  topk(2, {2, 3}).expect_refusal("output 0");
  CheckedCall("aten.topk")
      .input(x)
      .integer("k", 1)
      .integer("dim", 1)
      .output(DType::kFloat32, {2, 1})
      .expect_refusal("1 outputs");
  CheckedCall("aten.sort")
      .input(x)
      .integer("dim", 2)
      .output(DType::kFloat32, {2, 3})
      .output(DType::kInt64, {2, 3})
      .expect_refusal("'dim' = 2");
  CheckedCall("aten.sort")
      .input(x)
      .integer("dim", 1)
      .integer("descending", 5)
      .output(DType::kFloat32, {2, 3})
      .output(DType::kInt64, {2, 3})
      .expect_refusal("descending");
  CheckedCall("aten.sort")
      .input(x)
      .integer("dim", 1)
      .output(DType::kFloat32, {2, 3})
      .output(DType::kInt32, {2, 3})
      .expect_refusal("output 1");
  CheckedCall("aten.argmax")
      .input(Operand(DType::kFloat32, {2, 0}))
      .integer("dim", 1)
      .output(DType::kInt64, {2})
      .expect_refusal("size 0");
  CheckedCall("aten.max")
      .input(x)
      .integer("dim", 1)
      .integer("keepdim", 1)
      .output(DType::kFloat32, {2})
      .output(DType::kInt64, {2})
      .expect_refusal("output 0");
  CheckedCall("aten.min")
      .input(Operand(DType::kBool, {2}))
      .integer("dim", 0)
      .output(DType::kBool, {})
      .output(DType::kInt64, {})
      .expect_refusal("dtype bool");
}

}  // namespace
}  // namespace mote::test
