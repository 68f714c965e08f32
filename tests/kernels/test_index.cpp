#include <cstdint>
#include <map>

#include "tests/kernels/elements.h"

namespace mote::test {
namespace {

TEST(IndexSelect, PicksSlicesAlongEveryDimension) {
  const std::vector<int64_t> chosen = {2, 0, -1, 2, -3};
  const Operand index = Operand::of<int64_t>({5}, chosen);
  for (const DType dtype : kDTypes) {
    const Operand x = numbered(dtype, {3, 3, 3, 3});
    for (size_t dim = 0; dim < 4; ++dim) {
      Shape shape = x.shape();
      shape[dim] = 5;
      CheckedCall call("aten.index_select");
      call.input(dim % 2 == 0 ? x.strided() : x).input(dim == 1 ? index.strided() : index);
      call.integer("dim", static_cast<int64_t>(dim)).output(dtype, shape);
      call.expect_success();
      expect_elements(call.result(), [&](Index at) {
        at[dim] = (chosen[static_cast<size_t>(at[dim])] + 3) % 3;
        return bytes_at(x, at);
      });
    }
  }
}

TEST(IndexSelect, RefusesIndicesAndOperandsOutOfRange) {
  const auto select = [](std::vector<int64_t> chosen, int64_t dim, const Shape& shape) {
    CheckedCall call("aten.index_select");
    const auto count = static_cast<int64_t>(chosen.size());
    call.input(Operand::random({3, 4}, 1)).input(Operand::of<int64_t>({count}, chosen)).integer("dim", dim);
    call.output(DType::kFloat32, shape);
    return call;
  };
  select({0, 3}, 0, {2, 4}).expect_bad_data("index 1 is 3");
  select({-4}, 0, {1, 4}).expect_bad_data("-4");
  select({INT64_MIN}, 1, {3, 1}).expect_bad_data("must be -4..3");
  select({0}, 2, {1, 4}).expect_refusal("'dim' = 2");
  select({0}, 0, {2, 4}).expect_refusal("output 0");
  CheckedCall("aten.index_select")
      .input(Operand::random({3}, 1))
      .input(Operand(DType::kInt32, {1}))
      .integer("dim", 0)
      .output(DType::kFloat32, {1})
      .expect_refusal("dtype int32");
  CheckedCall("aten.index_select")
      .input(Operand::random({3}, 1))
      .input(Operand(DType::kInt64, {1, 1}))
      .integer("dim", 0)
      .output(DType::kFloat32, {1})
      .expect_refusal("rank 2");
  CheckedCall empty("aten.index_select");
  empty.input(Operand(DType::kFloat32, {0, 2})).input(Operand::of<int64_t>({1}, {0})).integer("dim", 0);
  empty.output(DType::kFloat32, {1, 2});
  empty.expect_bad_data("index 0 is 0");
}

// Indices within [0, size) that repeat.
Operand indices(const Shape& shape, int64_t size) {
  Operand index(DType::kInt64, shape);
  for (int64_t i = 0; i < index.tensor.num_elements(); ++i) index.tensor.as<int64_t>()[i] = (i * 7 + i / 5) % size;
  return index;
}

TEST(Gather, AlongEveryDimension) {
  for (const DType dtype : kDTypes) {
    const Operand x = numbered(dtype, {3, 4, 5});
    for (size_t dim = 0; dim < 3; ++dim) {
      const Operand index = indices({2, 4, 3}, x.shape()[dim]);
      CheckedCall call("aten.gather");
      call.input(x.strided()).input(dim == 1 ? index.strided() : index).integer("dim", static_cast<int64_t>(dim));
      call.output(dtype, {2, 4, 3});
      call.expect_success();
      expect_elements(call.result(), [&](Index at) {
        at[dim] = index.at<int64_t>(at);
        return bytes_at(x, at);
      });
    }
  }
}

TEST(Gather, ScalarsAndMoreIndicesThanElements) {
  CheckedCall scalar("aten.gather");
  scalar.input(Operand::of<float>({}, {4}))
      .input(Operand::of<int64_t>({}, {0}))
      .integer("dim", 0)
      .output(DType::kFloat32, {});
  scalar.expect_success();
  EXPECT_EQ(scalar.result().at<float>({}), 4.0f);
  CheckedCall longer("aten.gather");
  longer.input(Operand::of<float>({2}, {4, 5})).input(Operand::of<int64_t>({3}, {1, 1, 0})).integer("dim", 0);
  longer.output(DType::kFloat32, {3});
  longer.expect_success();
  EXPECT_EQ(longer.result().values<float>(), (std::vector<float>{5, 5, 4}));
}

TEST(Gather, RefusesIndicesAndOperandsOutOfRange) {
  const Operand x = Operand::random({2, 3}, 1);
  const auto gather = [&](const Operand& index, int64_t dim, const Shape& shape) {
    CheckedCall call("aten.gather");
    call.input(x).input(index).integer("dim", dim).output(DType::kFloat32, shape);
    return call;
  };
  gather(Operand::of<int64_t>({1, 1}, {3}), 1, {1, 1}).expect_bad_data("index 0 is 3");
  gather(Operand::of<int64_t>({1, 1}, {-1}), 1, {1, 1}).expect_bad_data("must be 0..2");
  gather(Operand(DType::kInt64, {3, 1}), 1, {3, 1}).expect_refusal("size 3 in dimension 0");
  gather(Operand(DType::kInt64, {2}), 1, {2}).expect_refusal("rank 1");
  gather(Operand(DType::kInt64, {1, 1}), 2, {1, 1}).expect_refusal("'dim' = 2");
  gather(Operand(DType::kInt64, {1, 1}), 1, {2, 1}).expect_refusal("output 0");
  gather(Operand(DType::kFloat32, {1, 1}), 1, {1, 1}).expect_refusal("dtype float32");
}

TEST(Scatter, TheLastOfEqualIndicesWins) {
  for (const DType dtype : kDTypes) {
    const Operand x = numbered(dtype, {3, 4, 5}), source = numbered(dtype, {3, 4, 9}, 55);
    for (size_t dim = 0; dim < 3; ++dim) {
      const Operand index = indices({2, 4, 3}, x.shape()[dim]);
      CheckedCall call("aten.scatter");
      call.input(x.strided()).input(index).input(source.strided()).integer("dim", static_cast<int64_t>(dim));
      call.output(dtype, x.shape());
      call.expect_success();
      std::map<Index, std::string> expected;
      for_each_index(x.shape(), [&](const Index& at) { expected[at] = bytes_at(x, at); });
      for_each_index(index.shape(), [&](const Index& at) {
        Index to = at;
        to[dim] = index.at<int64_t>(at);
        expected[to] = bytes_at(source, at);
      });
      expect_elements(call.result(), [&](const Index& at) { return expected[at]; });
    }
  }
}

TEST(Scatter, RefusesIndicesAndOperandsOutOfRange) {
  const Operand x = Operand::random({2, 3}, 1);
  const auto scatter = [&](const Operand& index, const Operand& source, int64_t dim) {
    CheckedCall call("aten.scatter");
    call.input(x).input(index).input(source).integer("dim", dim).output(DType::kFloat32, {2, 3});
    return call;
  };
  scatter(Operand::of<int64_t>({1, 1}, {2}), x, 0).expect_bad_data("index 0 is 2");
  scatter(Operand::of<int64_t>({1, 1}, {-1}), x, 0).expect_bad_data("is -1");
  scatter(Operand(DType::kInt64, {1, 4}), Operand::random({2, 4}, 1), 0).expect_refusal("size 4 in dimension 1");
  scatter(Operand(DType::kInt64, {3, 1}), x, 0).expect_refusal("input 2 has size 2");
  scatter(Operand(DType::kInt64, {1, 1}), Operand(DType::kInt64, {2, 3}), 0).expect_refusal("dtype int64");
  scatter(Operand(DType::kInt64, {1, 1}), Operand::random({3}, 1), 0).expect_refusal("rank 1");
  CheckedCall("aten.scatter")
      .input(x)
      .input(x)
      .input(x)
      .integer("dim", 0)
      .output(DType::kFloat32, {2, 3})
      .expect_refusal("dtype float32");
}

TEST(RepeatInterleave, RepeatsEachElement) {
  for (const DType dtype : kDTypes) {
    const Operand x = numbered(dtype, {3, 4, 5});
    for (size_t dim = 0; dim < 3; ++dim) {
      for (const int64_t repeats : {0, 1, 3}) {
        Shape shape = x.shape();
        shape[dim] *= repeats;
        CheckedCall call("aten.repeat_interleave");
        call.input(x.strided())
            .integer("repeats", repeats)
            .integer("dim", static_cast<int64_t>(dim))
            .output(dtype, shape);
        call.expect_success();
        expect_elements(call.result(), [&](Index at) {
          at[dim] /= repeats;
          return bytes_at(x, at);
        });
      }
    }
  }
  const auto refuse = [](const Shape& shape, int64_t repeats, int64_t dim, const char* part) {
    CheckedCall("aten.repeat_interleave")
        .input(Operand(DType::kInt8, shape))
        .integer("repeats", repeats)
        .integer("dim", dim)
        .output(DType::kInt8, {2})
        .expect_refusal(part);
  };
  refuse({2}, -1, 0, "'repeats' = -1");
  refuse({2}, INT64_MAX, 0, "'repeats'");
  refuse({2}, 2, 0, "output 0");
  refuse({2}, 1, 1, "'dim' = 1");
  refuse(Shape(8, 1), 1, 0, "rank 8");
}

}  // namespace
}  // namespace mote::test
