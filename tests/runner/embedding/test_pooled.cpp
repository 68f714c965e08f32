#include "runner/embedding/pooled.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace mote {
namespace {

constexpr std::array<std::array<float, 3>, 4> kRows{{{100, 100, 100}, {1, 2, 2}, {3, -4, 0}, {5, 8, 2}}};

// Of the rows behind the first, which is skipped.
std::vector<float> pooled(Pooling pooling, size_t dimensions = 3, bool normalized = false) {
  Pooled text;
  text.start(pooling, 3, 1);
  for (const auto& row : kRows) text.add(row);
  std::vector<float> result(dimensions);
  text.write(normalized, result);
  return result;
}

TEST(Pooled, does_what_its_name_says) {
  EXPECT_EQ(pooled(Pooling::kMean), (std::vector<float>{3, 2, 4.0f / 3}));
  EXPECT_EQ(pooled(Pooling::kLastToken), (std::vector<float>{5, 8, 2}));
  EXPECT_EQ(pooled(Pooling::kFirstToken), (std::vector<float>{1, 2, 2}));
  EXPECT_EQ(pooled(Pooling::kMax), (std::vector<float>{5, 8, 2}));
  const float root = std::sqrt(3.0f);
  EXPECT_FLOAT_EQ(pooled(Pooling::kMeanSqrtLength)[0], 9 / root);
  EXPECT_FLOAT_EQ(pooled(Pooling::kWeightedMean)[1], (2 * 2 - 3 * 4 + 4 * 8) / 9.0f);
}

TEST(Pooled, divides_the_first_dimensions_by_their_length) {
  EXPECT_EQ(pooled(Pooling::kFirstToken, 3, true), (std::vector<float>{1.0f / 3, 2.0f / 3, 2.0f / 3}));
  const std::vector<float> two = pooled(Pooling::kFirstToken, 2, true);
  EXPECT_FLOAT_EQ(two[0], 1 / std::sqrt(5.0f));
  EXPECT_FLOAT_EQ(two[1], 2 / std::sqrt(5.0f));
}

TEST(Pooled, leaves_zeros_as_they_are) {
  Pooled text;
  text.start(Pooling::kMean, 2, 0);
  text.add(std::array<float, 2>{0, 0});
  std::vector<float> result(2, 1.0f);
  text.write(true, result);
  EXPECT_EQ(result, (std::vector<float>{0, 0}));
}

TEST(Pooled, begins_anew) {
  Pooled text;
  text.start(Pooling::kMax, 1, 0);
  text.add(std::array<float, 1>{7});
  text.start(Pooling::kMax, 1, 0);
  text.add(std::array<float, 1>{-2});
  std::vector<float> result(1);
  text.write(false, result);
  EXPECT_EQ(result[0], -2.0f);
}

}  // namespace
}  // namespace mote
