#include <limits>

#include "tests/kernels/operands.h"

namespace mote::test {
namespace {

Shape product_shape(const Operand& a, const Operand& b) {
  Shape shape = a.shape();
  shape.back() = b.shape().back();
  return shape;
}

std::vector<double> reference(const Operand& a, const Operand& b) {
  std::vector<double> expected;
  for_each_index(product_shape(a, b), [&](const Index& index) {
    const size_t rank = index.size();
    Index from_a = index, from_b = index;
    double sum = 0;
    for (int64_t k = 0; k < a.shape().back(); ++k) {
      from_a[rank - 1] = k;
      from_b[rank - 2] = k;
      sum += static_cast<double>(a.at<float>(from_a)) * static_cast<double>(b.at<float>(from_b));
    }
    expected.push_back(sum);
  });
  return expected;
}

CheckedCall product(const Operand& a, const Operand& b) {
  CheckedCall call("aten.bmm");
  call.input(a).input(b).output(DType::kFloat32, product_shape(a, b));
  return call;
}

TEST(Matmul, MatchesDoubleForOddSizesAndStrides) {
  const Shape shapes[][2] = {{{3, 5}, {5, 7}},
                             {{1, 1}, {1, 1}},
                             {{2, 70, 33}, {2, 33, 17}},
                             {{2, 3, 4, 300}, {2, 3, 300, 31}},
                             {{4, 1, 129}, {4, 129, 16}},
                             {{130, 2}, {2, 1}}};
  for (const auto& [a_shape, b_shape] : shapes) {
    const Operand a = Operand::random(a_shape, 1), b = Operand::random(b_shape, 2);
    for (const auto& [left, right] : {std::pair(a, b), std::pair(a.strided(), b), std::pair(a, b.strided())}) {
      CheckedCall call = product(left, right);
      call.expect_success();
      expect_close(call.result().values<float>(), reference(a, b), 1e-5, 1e-4);
    }
  }
}

TEST(Matmul, ExpandedMatricesAreReadInPlace) {
  const Operand a = Operand::random({3, 4, 6}, 1), b = Operand::random({1, 6, 5}, 2).expanded(0, 3);
  CheckedCall call = product(a, b);
  call.expect_success();
  expect_close(call.result().values<float>(), reference(a, b));
}

TEST(Matmul, ARowHasTheSameBitsInEveryProductAndLayout) {
  const Operand a = Operand::random({67, 200}, 3), b = Operand::random({200, 33}, 4);
  CheckedCall many = product(a, b);
  many.expect_success();
  for (const int64_t row : {0, 63, 66}) {
    Operand one = a;
    one.tensor.data = a.tensor.as<float>() + row * 200;
    one.tensor.sizes[0] = 1;
    CheckedCall call = product(one, b.strided());
    call.expect_success();
    for (int64_t n = 0; n < 33; ++n) EXPECT_EQ(call.result().at<float>({0, n}), many.result().at<float>({row, n}));
  }
}

TEST(Matmul, EmptySums) {
  CheckedCall call = product(Operand(DType::kFloat32, {2, 0}), Operand(DType::kFloat32, {0, 3}));
  call.expect_success();
  EXPECT_EQ(call.result().values<float>(), std::vector<float>(6, 0.0f));
  product(Operand(DType::kFloat32, {0, 4}), Operand(DType::kFloat32, {4, 3})).expect_success();
}

TEST(Matmul, RefusesHostileOperands) {
  const Operand a = Operand::random({2, 3, 4}, 1), b = Operand::random({2, 4, 5}, 2);
  product(a, Operand::random({2, 3, 5}, 2)).expect_refusal("input 1 has sizes");
  product(a, Operand::random({1, 4, 5}, 2)).expect_refusal("input 1 has sizes");
  product(a, Operand::random({4, 5}, 2)).expect_refusal("input 1 has rank 2");
  product(Operand(DType::kFloat32, {3}), Operand(DType::kFloat32, {3})).expect_refusal("rank 1");
  product(Operand(DType::kFloat32, {2, 3}), Operand(DType::kInt64, {3, 2})).expect_refusal("dtype int64");
  CheckedCall("aten.bmm").input(a).input(b).output(DType::kFloat32, {2, 3, 4}).expect_refusal("output 0");
  CheckedCall("aten.bmm").input(a).absent_input().output(DType::kFloat32, {2, 3, 5}).expect_refusal("absent");
  CheckedCall("aten.bmm").input(a).output(DType::kFloat32, {2, 3, 5}).expect_refusal("1 inputs");
}

}  // namespace
}  // namespace mote::test
