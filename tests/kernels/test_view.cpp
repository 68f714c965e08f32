// Views: what an output reads through its strides.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

Owned counting(const Shape& shape) {
  Owned owned = make(DType::kFloat32, shape);
  std::iota(owned.as<float>(), owned.as<float>() + owned.count(), 0.0f);
  return owned;
}

// The elements that a view of x reads, or nothing where it is refused.
std::vector<double> view(const std::string& name, const Owned& x, const Shape& out,
                         const std::vector<std::pair<std::string, std::vector<int64_t>>>& attributes) {
  OpCall call(name);
  call.input(x).output(DType::kFloat32, out);
  for (const auto& [key, values] : attributes) call.integers(key, values);
  if (!call.run().ok()) return {};
  return to_doubles(call.result());
}

std::vector<double> values(std::initializer_list<double> list) { return list; }

TEST(View, merges_and_splits_contiguous_dimensions) {
  const Owned x = counting({2, 3, 4});
  EXPECT_EQ(to_doubles(x), view("aten.view", x, {6, 4}, {{"size", {6, 4}}}));
  EXPECT_EQ(to_doubles(x), view("aten.view", x, {2, 1, 3, 2, 2}, {{"size", {2, 1, 3, 2, 2}}}));
  EXPECT_EQ(to_doubles(x), view("aten.view", x, {24}, {{"size", {24}}}));
}

TEST(View, of_a_strided_tensor_needs_strides_that_allow_it) {
  const Owned x = with_layout(counting({1, 2, 3, 4}), {0, 2, 1, 3});  // [1, 3, 2, 4] in memory
  EXPECT_EQ(to_doubles(x), view("aten.view", x, {2, 3, 2, 2}, {{"size", {2, 3, 2, 2}}}));
  EXPECT_EQ(to_doubles(x), view("aten.view", x, {1, 1, 2, 3, 1, 4}, {{"size", {1, 1, 2, 3, 1, 4}}}));
  EXPECT_TRUE(view("aten.view", x, {6, 4}, {{"size", {6, 4}}}).empty());
  EXPECT_TRUE(view("aten.view", x, {24}, {{"size", {24}}}).empty());
}

TEST(View, of_scalars_and_empty_tensors) {
  EXPECT_EQ(values({0}), view("aten.view", counting({}), {1, 1}, {{"size", {1, 1}}}));
  EXPECT_EQ(values({0}), view("aten.view", counting({1, 1}), {}, {{"size", {}}}));
  OpCall call("aten.view");
  call.input(counting({0, 5})).output(DType::kFloat32, {3, 0, 7}).integers("size", {3, 0, 7});
  EXPECT_TRUE(call.check().ok());
}

TEST(View, reorders_and_adds_and_removes_dimensions) {
  const Owned x = counting({2, 3});
  EXPECT_EQ(values({0, 3, 1, 4, 2, 5}), view("aten.permute", x, {3, 2}, {{"dims", {1, 0}}}));
  EXPECT_EQ(to_doubles(x), view("aten.unsqueeze", x, {2, 3, 1}, {{"dim", {2}}}));
  EXPECT_EQ(to_doubles(x), view("aten.unsqueeze", x, {2, 1, 3}, {{"dim", {1}}}));
  EXPECT_EQ(to_doubles(x), view("aten.squeeze", counting({1, 2, 1, 3}), {2, 1, 3}, {{"dims", {0}}}));
  EXPECT_EQ(to_doubles(x), view("aten.squeeze", counting({1, 2, 1, 3}), {2, 3}, {{"dims", {0, 1, 2}}}));
}

TEST(View, expands_without_copying) {
  EXPECT_EQ(values({0, 0, 1, 1}), view("aten.expand", counting({2, 1}), {2, 2}, {{"size", {2, 2}}}));
  EXPECT_EQ(values({0, 1, 0, 1}), view("aten.expand", counting({2}), {2, 2}, {{"size", {2, 2}}}));
  EXPECT_TRUE(view("aten.expand", counting({2}), {3}, {{"size", {3}}}).empty());
  EXPECT_TRUE(view("aten.expand", counting({2, 1}), {2}, {{"size", {2}}}).empty());
}

TEST(View, slices_and_selects) {
  const Owned x = counting({3, 4});
  EXPECT_EQ(values({1, 3, 5, 7, 9, 11}),
            view("aten.slice", x, {3, 2}, {{"dim", {1}}, {"start", {1}}, {"end", {4}}, {"step", {2}}}));
  EXPECT_EQ(values({8, 9, 10, 11}), view("aten.slice", x, {1, 4}, {{"dim", {0}}, {"start", {2}}, {"end", {3}}}));
  EXPECT_EQ(values({3}), view("aten.slice", counting({4}), {1},
                              {{"dim", {0}}, {"start", {3}}, {"end", {4}}, {"step", {int64_t{1} << 40}}}));
  EXPECT_EQ(values({4, 5, 6, 7}), view("aten.select", x, {4}, {{"dim", {0}}, {"index", {1}}}));
  EXPECT_EQ(values({2, 6, 10}), view("aten.select", x, {3}, {{"dim", {1}}, {"index", {2}}}));
}

TEST(View, refuses_what_lies_outside) {
  const Owned x = counting({3, 4});
  const std::vector<std::vector<int64_t>> bounds = {{-1, 2}, {2, 1}, {0, 5}, {INT64_MIN, 3}, {0, INT64_MAX}};
  for (const auto& bound : bounds) {
    EXPECT_TRUE(view("aten.slice", x, {3, 1}, {{"dim", {1}}, {"start", {bound[0]}}, {"end", {bound[1]}}}).empty());
  }
  EXPECT_TRUE(view("aten.slice", x, {3, 4}, {{"dim", {1}}, {"start", {0}}, {"end", {4}}, {"step", {0}}}).empty());
  EXPECT_TRUE(view("aten.slice", x, {3, 4}, {{"dim", {2}}, {"start", {0}}, {"end", {4}}}).empty());
  EXPECT_TRUE(view("aten.slice", x, {3, 4}, {{"dim", {1}}, {"end", {4}}}).empty());
  EXPECT_TRUE(view("aten.select", x, {4}, {{"dim", {0}}, {"index", {3}}}).empty());
  EXPECT_TRUE(view("aten.select", x, {4}, {{"dim", {0}}, {"index", {-1}}}).empty());
  EXPECT_TRUE(view("aten.select", make(DType::kFloat32, {0, 4}), {4}, {{"dim", {0}}, {"index", {0}}}).empty());
  EXPECT_TRUE(view("aten.view", x, {3, 5}, {{"size", {3, 5}}}).empty());
  EXPECT_TRUE(view("aten.view", x, {12}, {{"size", {-12}}}).empty());
  EXPECT_TRUE(view("aten.view", x, {12}, {}).empty());
  EXPECT_TRUE(view("aten.permute", x, {3, 3}, {{"dims", {0, 0}}}).empty());
  EXPECT_TRUE(view("aten.permute", x, {3}, {{"dims", {0}}}).empty());
  EXPECT_TRUE(view("aten.permute", x, {4, 3}, {{"dims", {2, 0}}}).empty());
  EXPECT_TRUE(view("aten.unsqueeze", x, {3, 4, 1}, {{"dim", {3}}}).empty());
  EXPECT_TRUE(
      view("aten.unsqueeze", counting({1, 1, 1, 1, 1, 1, 1, 1}), {1, 1, 1, 1, 1, 1, 1, 1}, {{"dim", {0}}}).empty());
}

TEST(View, refuses_products_that_overflow) {
  Tensor x;
  x.rank = 4;
  x.sizes = {int64_t{1} << 39, int64_t{1} << 39, int64_t{1} << 39, 0};
  x.set_contiguous_strides();
  Owned hostile = make(DType::kFloat32, {1});
  hostile.tensor = x;
  OpCall call("aten.view");
  call.input(hostile).output(DType::kFloat32, {0}).integers("size", {0});
  EXPECT_FALSE(call.check().ok());
  hostile.tensor.rank = 9;
  OpCall rank("aten.view");
  rank.input(hostile).output(DType::kFloat32, {0}).integers("size", {0});
  EXPECT_FALSE(rank.check().ok());
}

TEST(View, refuses_another_dtype_and_quantised_tensors) {
  OpCall call("aten.view");
  call.input(counting({4})).output(DType::kInt64, {4}).integers("size", {4});
  EXPECT_FALSE(call.check().ok());
  const Tiles tiles = random_tiles({16, 32}, 8, 32, 1);
  OpCall quantised("aten.view");
  quantised.input(tiles.owned).output(DType::kFloat16, {512}).integers("size", {512});
  EXPECT_FALSE(quantised.check().ok());
}

}  // namespace
}  // namespace mote::test
