#include <cmath>
#include <limits>

#include "kernels/support/float_bits.h"
#include "tests/kernels/elements.h"

namespace mote::test {
namespace {

TEST(Clone, KeepsEveryDtypeAndMakesItContiguous) {
  for (const DType dtype : kDTypes) {
    const Operand x = numbered(dtype, {3, 5, 300});
    CheckedCall call("aten.clone");
    call.input(x.strided()).output(dtype, x.shape());
    call.expect_success();
    expect_elements(call.result(), [&](const Index& index) { return bytes_at(x, index); });
  }
  CheckedCall("aten.clone").input(numbered(DType::kInt8, {3, 0})).output(DType::kInt8, {3, 0}).expect_success();
  CheckedCall("aten.clone").input(numbered(DType::kInt8, {3})).output(DType::kInt32, {3}).expect_refusal("output 0");
  CheckedCall("aten.clone").input(numbered(DType::kInt8, {3})).output(DType::kInt8, {4}).expect_refusal("output 0");
}

TEST(ToCopy, ConvertsAsPyTorchDoes) {
  const Operand x = Operand::of<float>({6}, {0, -1.75f, 2.5f, 127.9f, -0.0f, 1e-3f});
  CheckedCall to_integer("aten._to_copy");
  to_integer.input(x.strided()).output(DType::kInt64, {6});
  to_integer.expect_success();
  EXPECT_EQ(to_integer.result().values<int64_t>(), (std::vector<int64_t>{0, -1, 2, 127, 0, 0}));
  CheckedCall to_bool("aten._to_copy");
  to_bool.input(x).output(DType::kBool, {6});
  to_bool.expect_success();
  EXPECT_EQ(to_bool.result().values<uint8_t>(), (std::vector<uint8_t>{0, 1, 1, 1, 0, 1}));
  CheckedCall to_float("aten._to_copy");
  to_float.input(Operand::of<int64_t>({3}, {-5, 16777217, 3})).output(DType::kFloat32, {3});
  to_float.expect_success();
  EXPECT_EQ(to_float.result().values<float>(), (std::vector<float>{-5, 16777216, 3}));
  CheckedCall to_half("aten._to_copy");
  to_half.input(x).output(DType::kFloat16, {6});
  to_half.expect_success();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(to_half.result().at<uint16_t>({i}), float32_to_float16(x.at<float>({i})));
}

TEST(ToCopy, NumbersOutOfRangeAreDefined) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : kDTypes) {
    CheckedCall call("aten._to_copy");
    call.input(Operand::of<float>({4}, {nan, infinity, -infinity, 3e38f})).output(dtype, {4});
    call.expect_success();
  }
}

TEST(Cat, JoinsAlongEveryDimensionAndDtype) {
  for (const DType dtype : kDTypes) {
    for (size_t dim = 0; dim < 3; ++dim) {
      Shape shapes[3] = {{3, 4, 5}, {3, 4, 5}, {3, 4, 5}};
      shapes[0][dim] = 2;
      shapes[1][dim] = 0;
      shapes[2][dim] = 7;
      const Operand parts[3] = {numbered(dtype, shapes[0]), numbered(dtype, shapes[1]), numbered(dtype, shapes[2], 77)};
      Shape shape = shapes[0];
      shape[dim] = 9;
      CheckedCall call("aten.cat");
      call.input(parts[0].strided()).input(parts[1]).input(parts[2]).integer("dim", static_cast<int64_t>(dim));
      call.output(dtype, shape);
      call.expect_success();
      expect_elements(call.result(), [&](Index index) {
        if (index[dim] < 2) return bytes_at(parts[0], index);
        index[dim] -= 2;
        return bytes_at(parts[2], index);
      });
    }
  }
}

TEST(Cat, LongRowsInPieces) {
  const Operand a = Operand::random({3, 1000}, 1), b = Operand::random({3, 1}, 2);
  CheckedCall call("aten.cat");
  call.input(a).input(b).integer("dim", 1).output(DType::kFloat32, {3, 1001});
  call.expect_success();
  expect_elements(call.result(), [&](Index index) {
    if (index[1] < 1000) return bytes_at(a, index);
    return bytes_at(b, {index[0], 0});
  });
}

TEST(Cat, RefusesHostileOperands) {
  const Operand x = Operand::random({2, 3}, 1);
  const auto cat = [&](const Operand& other, int64_t dim, const Shape& shape) {
    CheckedCall("aten.cat").input(x).input(other).integer("dim", dim).output(DType::kFloat32, shape).expect_refusal("");
  };
  cat(x, 2, {4, 3});
  cat(x, 0, {5, 3});
  cat(Operand::random({2, 4}, 1), 0, {4, 3});
  cat(Operand::random({3}, 1), 0, {3, 3});
  cat(Operand(DType::kInt32, {2, 3}), 0, {4, 3});
  CheckedCall("aten.cat").integer("dim", 0).output(DType::kFloat32, {0}).expect_refusal("0 inputs");
  CheckedCall("aten.cat")
      .input(x)
      .absent_input()
      .integer("dim", 0)
      .output(DType::kFloat32, {2, 3})
      .expect_refusal("absent");
  CheckedCall("aten.cat")
      .input(Operand::random({}, 1))
      .integer("dim", 0)
      .output(DType::kFloat32, {1})
      .expect_refusal("rank 0");
  CheckedCall many("aten.cat");
  for (int i = 0; i < 3; ++i) many.input(Operand::random({1, 1}, 1).expanded(0, int64_t{1} << 39));
  many.integer("dim", 0).output(DType::kFloat32, {0, 1}).expect_refusal("exceed");
}

template <typename T>
void expect_full(double value, T expected, DType dtype = dtype_of<T>()) {
  CheckedCall call("aten.full");
  call.integers("size", {2, 3}).number("value", value).output(dtype, {2, 3});
  call.expect_success();
  const Operand y = call.result();
  for_each_index(y.shape(), [&](const Index& index) {
    const T found = y.at<T>(index);
    EXPECT_EQ(std::memcmp(&found, &expected, sizeof(T)), 0);
  });
}

TEST(Full, EveryDtype) {
  expect_full<float>(-3.4028234663852886e38, -std::numeric_limits<float>::max());
  expect_full<float>(-HUGE_VAL, -std::numeric_limits<float>::infinity());
  expect_full<float>(0.1, 0.1f);
  expect_full<uint16_t>(1.0, 0x3f80, DType::kBFloat16);
  expect_full<uint16_t>(1.0, 0x3c00, DType::kFloat16);
  expect_full<int64_t>(-5, -5);
  expect_full<int32_t>(-2147483648.0, INT32_MIN);
  expect_full<int8_t>(-128, -128);
  expect_full<uint8_t>(255, 255, DType::kUint8);
  expect_full<uint8_t>(0.5, 1);
}

TEST(Full, RefusesHostileAttributes) {
  const auto full = [](DType dtype, const std::vector<int64_t>& size, double value, const char* part) {
    CheckedCall("aten.full").integers("size", size).number("value", value).output(dtype, {2}).expect_refusal(part);
  };
  full(DType::kInt64, {2}, 1e30, "'value' = 1e+30");
  full(DType::kInt64, {2}, 0x1p63, "'value'");
  full(DType::kInt32, {2}, std::nan(""), "'value'");
  full(DType::kInt8, {2}, 128, "'value'");
  full(DType::kInt32, {2}, 0.5, "'value'");
  full(DType::kFloat32, {3}, 1, "output 0");
  full(DType::kFloat32, {-1}, 1, "'size' holds -1");
  full(DType::kFloat32, std::vector<int64_t>(9, 1), 1, "at most 8");
  CheckedCall("aten.full").integers("size", {2}).output(DType::kFloat32, {2}).expect_refusal("'value'");
  CheckedCall("aten.full").number("value", 1).output(DType::kFloat32, {2}).expect_refusal("'size'");
}

void expect_arange(int64_t start, int64_t end, int64_t step, const std::vector<int64_t>& expected) {
  CheckedCall call("aten.arange");
  call.integer("start", start).integer("end", end).integer("step", step);
  call.output(DType::kInt64, {static_cast<int64_t>(expected.size())});
  call.expect_success();
  EXPECT_EQ(call.result().values<int64_t>(), expected);
}

TEST(Arange, CountsUpAndDown) {
  expect_arange(0, 4, 1, {0, 1, 2, 3});
  expect_arange(3, 10, 3, {3, 6, 9});
  expect_arange(5, -2, -3, {5, 2, -1});
  expect_arange(2, 2, 1, {});
  const auto refuse = [](int64_t start, int64_t end, int64_t step, const char* part) {
    CheckedCall("aten.arange")
        .integer("start", start)
        .integer("end", end)
        .integer("step", step)
        .output(DType::kInt64, {2})
        .expect_refusal(part);
  };
  refuse(0, 2, 0, "'step' = 0");
  refuse(2, 0, 1, "'end' = 0");
  refuse(0, 3, 1, "output 0");
  refuse(INT64_MIN, INT64_MAX, 1, "'start'");
  CheckedCall("aten.arange")
      .integer("start", 0)
      .integer("end", 2)
      .integer("step", 1)
      .output(DType::kInt32, {2})
      .expect_refusal("output 0");
}

TEST(ConstantPad, PadsAndCropsEveryDtype) {
  for (const DType dtype : kDTypes) {
    const Operand x = numbered(dtype, {3, 4, 5});
    const std::string filling =
        bytes_at(numbered(dtype, {1}, 0), {0}).assign(static_cast<size_t>(dtype_bytes(dtype)), '\0');
    for (const std::vector<int64_t>& pad :
         {std::vector<int64_t>{2, 1}, {0, 3, 1, 0}, {-1, 2, 1, -2, 0, 1}, {}, {-2, -3}}) {
      Shape shape = x.shape();
      Index before(3, 0);
      for (size_t i = 0; i < pad.size(); i += 2) {
        before[2 - i / 2] = pad[i];
        shape[2 - i / 2] += pad[i] + pad[i + 1];
      }
      CheckedCall call("aten.constant_pad_nd");
      call.input(x.strided()).integers("pad", pad).output(dtype, shape);
      call.expect_success();
      expect_elements(call.result(), [&](Index index) {
        for (size_t dim = 0; dim < 3; ++dim) {
          index[dim] -= before[dim];
          if (index[dim] < 0 || index[dim] >= x.shape()[dim]) return filling;
        }
        return bytes_at(x, index);
      });
    }
  }
}

TEST(ConstantPad, FillsWithTheValueAndRefusesTheRest) {
  CheckedCall call("aten.constant_pad_nd");
  call.input(Operand::of<float>({2}, {1, 2}))
      .integers("pad", {1, 1})
      .number("value", -7.5)
      .output(DType::kFloat32, {4});
  call.expect_success();
  EXPECT_EQ(call.result().values<float>(), (std::vector<float>{-7.5f, 1, 2, -7.5f}));
  const auto refuse = [](const std::vector<int64_t>& pad, const Shape& shape, const char* part) {
    CheckedCall("aten.constant_pad_nd")
        .input(Operand(DType::kInt32, {2}))
        .integers("pad", pad)
        .output(DType::kInt32, shape)
        .expect_refusal(part);
  };
  refuse({1}, {3}, "pairs");
  refuse({1, 1, 1, 1}, {4}, "at most 2");
  refuse({-2, -1}, {0}, "crops");
  refuse({INT64_MAX, 1}, {0}, "'pad' holds");
  refuse({1, 1}, {5}, "output 0");
}

TEST(Triangle, KeepsOneSideOfTheDiagonal) {
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBool}) {
    const Operand x = numbered(dtype, {2, 5, 7});
    const std::string zero(static_cast<size_t>(dtype_bytes(dtype)), '\0');
    for (const int64_t diagonal : {-9, -2, 0, 1, 6, 40}) {
      for (const bool lower : {true, false}) {
        CheckedCall call(lower ? "aten.tril" : "aten.triu");
        call.input(lower ? x.strided() : x).integer("diagonal", diagonal).output(dtype, x.shape());
        call.expect_success();
        expect_elements(call.result(), [&](const Index& index) {
          const int64_t distance = index[2] - index[1];
          return (lower ? distance <= diagonal : distance >= diagonal) ? bytes_at(x, index) : zero;
        });
      }
    }
  }
  CheckedCall("aten.tril")
      .input(Operand(DType::kFloat32, {4}))
      .integer("diagonal", 0)
      .output(DType::kFloat32, {4})
      .expect_refusal("rank 1");
  CheckedCall("aten.triu")
      .input(Operand(DType::kFloat32, {4, 4}))
      .integer("diagonal", INT64_MIN)
      .output(DType::kFloat32, {4, 4})
      .expect_refusal("diagonal");
}

TEST(Where, BroadcastsAllThree) {
  for (const DType dtype : kDTypes) {
    const Operand condition = Operand::of<uint8_t>({3, 1}, {1, 0, 1});
    const Operand a = numbered(dtype, {2, 3, 200}), b = numbered(dtype, {200}, 99);
    CheckedCall call("aten.where");
    call.input(condition).input(a.strided()).input(b).output(dtype, {2, 3, 200});
    call.expect_success();
    expect_elements(call.result(),
                    [&](const Index& index) { return index[1] != 1 ? bytes_at(a, index) : bytes_at(b, {index[2]}); });
  }
}

TEST(Where, RefusesHostileOperands) {
  const Operand condition(DType::kBool, {3}), a(DType::kFloat32, {3}), b(DType::kFloat32, {4});
  CheckedCall("aten.where")
      .input(condition)
      .input(a)
      .input(b)
      .output(DType::kFloat32, {3})
      .expect_refusal("sizes 3 and 4");
  CheckedCall("aten.where").input(a).input(a).input(a).output(DType::kFloat32, {3}).expect_refusal("must be bool");
  CheckedCall("aten.where")
      .input(condition)
      .input(a)
      .input(condition)
      .output(DType::kFloat32, {3})
      .expect_refusal("dtype bool");
  CheckedCall("aten.where").input(condition).input(a).input(a).output(DType::kFloat32, {1}).expect_refusal("output 0");
  CheckedCall("aten.where").input(condition).input(a).output(DType::kFloat32, {3}).expect_refusal("2 inputs");
}

}  // namespace
}  // namespace mote::test
