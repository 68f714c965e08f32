// Elements in order, from and to memory with strides.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "backends/assets/strided.h"

namespace mote::assets::test {
namespace {

constexpr std::array<int64_t, 3> kShape = {2, 3, 4};

TEST(Strided, elementsComeInOrder) {
  // Rows of 4 in lines of 8, heads 32 apart; and columns before rows.
  for (const std::array<int64_t, 3>& strides : {std::array<int64_t, 3>{32, 8, 1}, std::array<int64_t, 3>{12, 1, 3}}) {
    std::vector<int32_t> memory(64);
    std::iota(memory.begin(), memory.end(), 0);
    std::vector<int32_t> found(24);
    gather(memory.data(), kShape, strides, sizeof(int32_t), reinterpret_cast<std::byte*>(found.data()));
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        for (int64_t k = 0; k < 4; ++k) {
          EXPECT_EQ(found[static_cast<size_t>(12 * i + 4 * j + k)], i * strides[0] + j * strides[1] + k * strides[2]);
        }
      }
    }
    std::vector<int32_t> back(64, -1);
    scatter(reinterpret_cast<const std::byte*>(found.data()), kShape, strides, sizeof(int32_t), back.data());
    size_t written = 0;
    for (size_t i = 0; i < back.size(); ++i) {
      written += back[i] == -1 ? 0 : 1;
      EXPECT_TRUE(back[i] == -1 || back[i] == static_cast<int32_t>(i));
    }
    EXPECT_EQ(written, 24u);
  }
}

TEST(Strided, aNumberIsOneElement) {
  const float number = 2.5f;
  float found = 0.0f;
  gather(&number, {}, {}, sizeof(float), reinterpret_cast<std::byte*>(&found));
  EXPECT_EQ(found, number);
}

}  // namespace
}  // namespace mote::assets::test
