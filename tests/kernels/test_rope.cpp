// mote.rope_table and mote.rope against double.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

TEST(RopeTable, agrees_with_double_at_large_positions) {
  const Owned positions = integers({1, 4}, {0, 1, 131071, 1000000});
  const Owned inv_freq = floats({3}, {1.0f, 0.1f, 1e-4f});
  for (const std::string layout : {"half", "interleaved"}) {
    OpCall call("mote.rope_table");
    call.input(positions).input(inv_freq).output(DType::kFloat32, {1, 4, 6}).output(DType::kFloat32, {1, 4, 6});
    call.number("scale", 1.5).text("layout", layout);
    ASSERT_TRUE(call.run(2).ok());
    for (int64_t t = 0; t < 4; ++t) {
      for (int64_t i = 0; i < 6; ++i) {
        const int64_t f = layout == "half" ? i % 3 : i / 2;
        const float angle = static_cast<float>(positions.as<int64_t>()[t]) * inv_freq.as<float>()[f];
        EXPECT_NEAR(1.5 * std::cos(static_cast<double>(angle)),
                    static_cast<double>(call.result(0).as<float>()[t * 6 + i]), 2e-7);
        EXPECT_NEAR(1.5 * std::sin(static_cast<double>(angle)),
                    static_cast<double>(call.result(1).as<float>()[t * 6 + i]), 2e-7);
      }
    }
  }
}

// Index of the partner of element i, and the sign with which its sine product enters.
std::pair<int64_t, float> partner(const std::string& layout, int64_t i, int64_t turned) {
  const int64_t half = turned / 2;
  if (layout == "interleaved") return {i % 2 == 0 ? i + 1 : i - 1, i % 2 == 0 ? -1.0f : 1.0f};
  const float sign = i < half ? -1.0f : 1.0f;
  return {i < half ? i + half : i - half, layout == "half" ? sign : -sign};
}

// Both products are rounded before they are added, wherever x and y lie: fused ones give other bits.
TEST(Rope, turns_pairs_to_the_bit_and_copies_the_rest) {
  for (const std::string layout : {"half", "half_flipped", "interleaved"}) {
    for (const int64_t turned : {0, 2, 6, 10, 32, 70}) {
      const int64_t heads = 3, tokens = 5, width = 70;
      const Owned x = random_floats({1, heads, tokens, width}, 1);
      const Owned cos = random_floats({1, tokens, turned}, 2), sin = random_floats({1, tokens, turned}, 3);
      std::vector<float> expected(x.as<float>(), x.as<float>() + heads * tokens * width);
      for (int64_t row = 0; row < heads * tokens; ++row) {
        for (int64_t i = 0; i < turned; ++i) {
          const auto [j, sign] = partner(layout, i, turned);
          const int64_t at = row % tokens * turned + i;
          const volatile float straight = x.as<float>()[row * width + i] * cos.as<float>()[at];
          const volatile float crossed = x.as<float>()[row * width + j] * sin.as<float>()[at];
          expected[static_cast<size_t>(row * width + i)] = straight + sign * crossed;
        }
      }
      for (const std::vector<int>& order : {std::vector<int>{0, 1, 2, 3}, {0, 2, 1, 3}, {3, 2, 1, 0}}) {
        OpCall call("mote.rope");
        call.input(with_layout(x, order)).input(cos).input(sin).output(DType::kFloat32, {1, heads, tokens, width});
        call.text("layout", layout);
        const Status status = call.run(2);
        ASSERT_TRUE(status.ok()) << status.message();
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_EQ(call.result().as<float>()[i], expected[i]) << layout << " " << turned << " " << i;
        }
      }
    }
  }
}

TEST(Rope, refuses_what_does_not_fit) {
  const auto accepted = [](const Shape& x, const Shape& cos, const Shape& sin, const std::string& layout) {
    OpCall call("mote.rope");
    const Owned a = make(DType::kFloat32, x), b = make(DType::kFloat32, cos), c = make(DType::kFloat32, sin);
    call.input(a).input(b).input(c).output(DType::kFloat32, x).text("layout", layout);
    return call.check().ok();
  };
  EXPECT_TRUE(accepted({1, 2, 3, 8}, {1, 3, 8}, {1, 3, 8}, "half"));
  EXPECT_FALSE(accepted({1, 2, 3, 8}, {1, 3, 8}, {1, 3, 8}, "quarter"));
  EXPECT_FALSE(accepted({1, 2, 3, 8}, {1, 3, 10}, {1, 3, 10}, "half"));
  EXPECT_FALSE(accepted({1, 2, 3, 8}, {1, 3, 7}, {1, 3, 7}, "half"));
  EXPECT_FALSE(accepted({1, 2, 3, 8}, {1, 4, 8}, {1, 4, 8}, "half"));
  EXPECT_FALSE(accepted({1, 2, 3, 8}, {1, 3, 8}, {1, 3, 6}, "half"));
  EXPECT_FALSE(accepted({2, 2, 3, 8}, {1, 3, 8}, {1, 3, 8}, "half"));
  EXPECT_FALSE(accepted({2, 3, 8}, {1, 3, 8}, {1, 3, 8}, "half"));
}

TEST(RopeTable, refuses_what_does_not_fit) {
  const auto accepted = [](const Shape& positions, const Shape& inv_freq, const Shape& out) {
    OpCall call("mote.rope_table");
    const Owned a = make(DType::kInt64, positions), b = make(DType::kFloat32, inv_freq);
    call.input(a).input(b).output(DType::kFloat32, out).output(DType::kFloat32, out);
    return call.check().ok();
  };
  EXPECT_TRUE(accepted({1, 3}, {4}, {1, 3, 8}));
  EXPECT_FALSE(accepted({1, 3}, {4}, {1, 3, 4}));
  EXPECT_FALSE(accepted({1, 3}, {4, 1}, {1, 3, 8}));
  EXPECT_FALSE(accepted({1, 1, 1, 1, 1, 1, 1, 3}, {4}, {1, 3, 8}));
}

}  // namespace
}  // namespace mote::test
