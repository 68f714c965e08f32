// Rows of a cache on their way to and from another form: what a session's keys and values are when it moves.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/ops/attention/rows.h"
#include "kernels/support/float_bits.h"
#include "tests/kernels/attention_harness.h"

namespace mote::test {
namespace {

// Rows with memory of their own.
struct OwnedRows {
  OwnedRows(const Setting& s, int64_t positions, DType of)
      : dtype(of),
        keys(static_cast<size_t>(positions * s.kv_heads * s.head_dim * dtype_bytes(of))),
        values(static_cast<size_t>(positions * s.kv_heads * s.value_dim * dtype_bytes(of))) {}
  CacheRows rows() { return {dtype, keys, values}; }
  std::vector<std::byte>& part(bool is_key) { return is_key ? keys : values; }

  DType dtype;
  std::vector<std::byte> keys, values;
};

std::vector<float> floats_of(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<float> found(bytes.size() / static_cast<size_t>(dtype_bytes(dtype)));
  to_float32(bytes.data(), dtype, static_cast<int64_t>(found.size()), found.data());
  return found;
}

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = float16_to_float32(float32_to_float16(value));
  return values;
}

// Numbers of all sizes, and what rounding treats apart.
void fill(std::vector<std::byte>& bytes, uint32_t seed, bool has_extremes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float extremes[] = {0.0f,      -0.0f,      65504.0f,       65519.99f,     65520.0f, -1e30f,
                            kInfinity, -kInfinity, 6.1e-5f,        5.96e-8f,      2.98e-8f, 2.9e-8f,
                            1e-30f,    -6.097e-5f, 1.00048828125f, 1.00146484375f};
  uint32_t x = seed;
  for (size_t i = 0; i < bytes.size() / 4; ++i) {
    x = x * 1664525u + 1013904223u;
    float value = (static_cast<float>(x >> 8) / 8388608.0f - 1.0f) * (i % 3 == 0 ? 1e-4f : 3.0f);
    if (has_extremes && i % 5 == 0) value = extremes[x >> 28];
    std::memcpy(bytes.data() + 4 * i, &value, sizeof value);
  }
}

class Rows : public testing::TestWithParam<Setting> {};

constexpr int64_t kPositions = 133;

INSTANTIATE_TEST_SUITE_P(
    All, Rows,
    testing::Values(
        Setting{.name = "float32", .head_dim = 64, .value_dim = 64},
        Setting{.name = "float16", .head_dim = 64, .value_dim = 64, .type = KvType::kFloat16},
        Setting{.name = "float16_odd", .kv_heads = 3, .head_dim = 33, .value_dim = 17, .type = KvType::kFloat16},
        Setting{.name = "int8", .head_dim = 64, .value_dim = 64, .type = KvType::kInt8},
        Setting{.name = "int8_odd", .kv_heads = 3, .head_dim = 33, .value_dim = 40, .type = KvType::kInt8},
        Setting{.name = "float16_ring",
                .head_dim = 16,
                .value_dim = 16,
                .ring = 200,
                .num_sinks = 3,
                .type = KvType::kFloat16},
        Setting{
            .name = "int8_ring", .head_dim = 16, .value_dim = 16, .ring = 200, .num_sinks = 3, .type = KvType::kInt8}),
    [](const auto& tested) { return tested.param.name; });

// Floats stay what they are, float16 the nearest, int8 within half a step, and reading them as float16 rounds once.
TEST_P(Rows, come_back_as_they_were_stored) {
  const Setting& s = GetParam();
  TestPool pool(2);
  OwnedRows given(s, kPositions, DType::kFloat32);
  fill(given.keys, 1, s.type != KvType::kInt8);
  fill(given.values, 2, s.type != KvType::kInt8);
  Cache cache(s, 256);
  ASSERT_TRUE(store_rows(cache.caches[0], kPositions, given.rows(), pool).ok());
  ASSERT_TRUE(can_load_rows(cache.caches[0], kPositions));
  OwnedRows wide(s, kPositions, DType::kFloat32), half(s, kPositions, DType::kFloat16);
  load_rows(cache.caches[0], kPositions, wide.rows(), pool);
  load_rows(cache.caches[0], kPositions, half.rows(), pool);
  for (const bool is_key : {true, false}) {
    const std::vector<float> expected = floats_of(given.part(is_key), DType::kFloat32);
    const std::vector<float> found = floats_of(wide.part(is_key), DType::kFloat32);
    EXPECT_EQ(bits_of(rounded(found)), bits_of(floats_of(half.part(is_key), DType::kFloat16))) << is_key;
    if (s.type != KvType::kInt8) {
      EXPECT_EQ(bits_of(s.type == KvType::kFloat16 ? rounded(expected) : expected), bits_of(found)) << is_key;
    }
    if (s.type == KvType::kInt8) {
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], found[i], 3.0f / 254 * 1.001f) << i;
    }
  }
}

// What is read of int8 gives the same codes again.
TEST_P(Rows, are_the_same_after_a_second_way) {
  const Setting& s = GetParam();
  TestPool pool(2);
  Cache first(s, 256), second(s, 256);
  OwnedRows floats(s, kPositions, DType::kFloat32);
  fill(floats.keys, 3, false);
  fill(floats.values, 4, false);
  ASSERT_TRUE(store_rows(first.caches[0], kPositions, floats.rows(), pool).ok());
  load_rows(first.caches[0], kPositions, floats.rows(), pool);
  ASSERT_TRUE(store_rows(second.caches[0], kPositions, floats.rows(), pool).ok());
  OwnedRows again(s, kPositions, DType::kFloat32);
  load_rows(second.caches[0], kPositions, again.rows(), pool);
  for (const bool is_key : {true, false}) {
    const std::vector<float> before = floats_of(floats.part(is_key), DType::kFloat32);
    const std::vector<float> after = floats_of(again.part(is_key), DType::kFloat32);
    for (size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(before[i], after[i], std::abs(before[i]) * 1e-6f) << i;
  }
}

}  // namespace
}  // namespace mote::test
