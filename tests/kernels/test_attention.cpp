// mote.attention against softmax attention in double over everything that was appended.
#include <gtest/gtest.h>

#include "tests/kernels/attention_harness.h"

namespace mote::test {
namespace {

class Attention : public testing::TestWithParam<Setting> {};

TEST_P(Attention, agrees_with_softmax_in_double) {
  const Setting& s = GetParam();
  const int64_t tokens = 83;
  const Sequence sequence = random_sequence(s, tokens, 1);
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{64}, tokens}) {
    Cache cache(s, capacity_for(s, tokens, chunk));
    for (int64_t begin = 0; begin < tokens; begin += chunk) {
      const int64_t end = std::min(tokens, begin + chunk);
      Owned out;
      const Status status = attend(s, sequence, cache, begin, end, 2, &out);
      ASSERT_TRUE(status.ok()) << status.message();
      if (chunk == 1 && begin % 9 != 0) continue;
      EXPECT_LT(relative_error(out.as<float>(), expected_rows(s, sequence, begin, end)), s.tolerance)
          << chunk << " at " << begin;
    }
  }
}

TEST_P(Attention, is_equal_to_the_bit_for_threads_and_chunks) {
  const Setting& s = GetParam();
  const int64_t tokens = 107;
  const Sequence sequence = random_sequence(s, tokens, 2);
  Cache whole(s, capacity_for(s, tokens, tokens));
  Owned expected;
  ASSERT_TRUE(attend(s, sequence, whole, 0, tokens, 1, &expected).ok());
  const auto row_bytes = static_cast<size_t>(s.heads * s.value_dim) * sizeof(float);
  for (const int64_t chunk : {int64_t{1}, int64_t{5}, int64_t{40}, tokens}) {
    Cache cache(s, capacity_for(s, tokens, chunk));
    int threads = 0;
    for (int64_t begin = 0; begin < tokens; begin += chunk) {
      const int64_t end = std::min(tokens, begin + chunk);
      Owned out;
      ASSERT_TRUE(attend(s, sequence, cache, begin, end, threads++ % 4 + 1, &out).ok());
      EXPECT_EQ(0, std::memcmp(out.bytes.data(), expected.bytes.data() + static_cast<size_t>(begin) * row_bytes,
                               static_cast<size_t>(end - begin) * row_bytes))
          << chunk << " at " << begin;
    }
  }
}

TEST_P(Attention, reads_the_cache_of_another_layer) {
  const Setting& s = GetParam();
  const Sequence sequence = random_sequence(s, 20, 3);
  Cache cache(s, capacity_for(s, 20, 20));
  Owned first, second;
  ASSERT_TRUE(attend(s, sequence, cache, 0, 20, 1, &first).ok());
  ASSERT_TRUE(attend(s, sequence, cache, 0, 20, 2, &second, false).ok());
  EXPECT_TRUE(same_bits(first, second));
}

TEST_P(Attention, forgets_what_lies_behind_a_rewound_position) {
  const Setting& s = GetParam();
  const Sequence sequence = random_sequence(s, 12, 4), other = random_sequence(s, 12, 40);
  Cache cache(s, capacity_for(s, 12, 12)), fresh(s, capacity_for(s, 12, 12));
  Owned expected, out;
  ASSERT_TRUE(attend(s, sequence, fresh, 0, 5, 1, nullptr).ok());
  ASSERT_TRUE(attend(s, sequence, fresh, 5, 6, 1, &expected).ok());
  ASSERT_TRUE(attend(s, sequence, cache, 0, 5, 1, nullptr).ok());
  ASSERT_TRUE(attend(s, other, cache, 5, 12, 1, nullptr).ok());
  ASSERT_TRUE(attend(s, sequence, cache, 5, 6, 1, &out).ok());
  EXPECT_TRUE(same_bits(expected, out));
}

std::vector<Setting> settings() {
  return {
      {.name = "grouped"},
      {.name = "one_head_each", .heads = 3, .kv_heads = 3, .head_dim = 20, .value_dim = 20},
      {.name = "one_key_head", .heads = 19, .kv_heads = 1, .head_dim = 8, .value_dim = 8},
      {.name = "wider_keys", .head_dim = 48, .value_dim = 21},
      {.name = "window", .window = 9},
      {.name = "window_ring", .window = 33, .ring = 33},
      {.name = "narrow_window_in_ring", .window = 5, .ring = 11},
      {.name = "ring_with_sink_positions", .window = 10, .ring = 10, .num_sinks = 3},
      {.name = "sinks", .sinks = true},
      {.name = "alibi", .alibi = true},
      {.name = "softcap", .softcap = 2.0f},
      {.name = "everything", .window = 17, .ring = 17, .num_sinks = 2, .sinks = true, .alibi = true, .softcap = 5.0f},
      {.name = "values_in_keys", .heads = 16, .kv_heads = 1, .head_dim = 48, .value_dim = 32, .values_in_keys = true},
      {.name = "values_in_a_ring_of_keys",
       .head_dim = 35,
       .window = 17,
       .ring = 17,
       .num_sinks = 2,
       .type = KvType::kFloat16,
       .tolerance = 2e-3,
       .values_in_keys = true},
      {.name = "values_in_int8_keys",
       .heads = 7,
       .kv_heads = 1,
       .head_dim = 57,
       .value_dim = 48,
       .type = KvType::kInt8,
       .tolerance = 3e-2,
       .values_in_keys = true},
      {.name = "values_in_turned_int4_keys",
       .heads = 7,
       .kv_heads = 1,
       .head_dim = 80,
       .value_dim = 48,
       .type = KvType::kInt4,
       .tolerance = 0.4,
       .values_in_keys = true},
      {.name = "float16", .type = KvType::kFloat16, .tolerance = 2e-3},
      {.name = "int8", .head_dim = 40, .value_dim = 33, .type = KvType::kInt8, .tolerance = 3e-2},
      {.name = "int4", .head_dim = 40, .value_dim = 33, .type = KvType::kInt4, .tolerance = 0.4},
      {.name = "int4_ring",
       .head_dim = 7,
       .value_dim = 64,
       .window = 12,
       .ring = 12,
       .type = KvType::kInt4,
       .tolerance = 0.4},
  };
}

INSTANTIATE_TEST_SUITE_P(Settings, Attention, testing::ValuesIn(settings()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(BidirectionalAttention, agrees_with_softmax_in_double_for_any_number_of_threads) {
  for (const int window : {0, 1, 9, 300}) {
    for (const int64_t tokens : {int64_t{1}, int64_t{16}, int64_t{83}, int64_t{300}}) {
      for (const KvType type : {KvType::kFloat32, KvType::kInt8}) {
        const Setting s{.name = "bidirectional",
                        .window = window,
                        .type = type,
                        .tolerance = type == KvType::kInt8 ? 3e-2 : 3e-6,
                        .bidirectional = true};
        const Sequence sequence = random_sequence(s, tokens, 5);
        Owned first;
        for (const int threads : {1, 2, 5}) {
          Cache cache(s, tokens);
          Owned out;
          ASSERT_TRUE(attend(s, sequence, cache, 0, tokens, threads, &out).ok());
          if (threads == 1) {
            first = std::move(out);
            EXPECT_LT(relative_error(first.as<float>(), expected_rows(s, sequence, 0, tokens)), s.tolerance)
                << window << " " << tokens;
          } else {
            EXPECT_TRUE(same_bits(first, out)) << window << " " << tokens << " " << threads;
          }
        }
      }
    }
  }
}

TEST(BidirectionalAttention, refuses_rings_and_alibi) {
  const Setting ring{.name = "ring", .window = 4, .ring = 4, .bidirectional = true};
  const Setting alibi{.name = "alibi", .alibi = true, .bidirectional = true};
  for (const Setting& s : {ring, alibi}) {
    Cache cache(s, 8);
    EXPECT_EQ(Code::kInvalidProgram, attend(s, random_sequence(s, 4, 1), cache, 0, 4, 1, nullptr).code());
  }
}

TEST(AttentionRefuses, positions_that_the_cache_does_not_hold) {
  const Setting plain{.name = "plain"};
  const Sequence sequence = random_sequence(plain, 9, 1);
  Cache cache(plain, 8);
  EXPECT_TRUE(attend(plain, sequence, cache, 0, 8, 1, nullptr).ok());
  EXPECT_EQ(Code::kContextFull, attend(plain, sequence, cache, 8, 9, 1, nullptr).code());
  const Setting ring{.name = "ring", .window = 4, .ring = 4};
  Cache small(ring, 4 + 3 - 1);
  EXPECT_TRUE(attend(ring, sequence, small, 0, 3, 1, nullptr).ok());
  EXPECT_EQ(Code::kInvalidArgument, attend(ring, sequence, small, 3, 7, 1, nullptr).code());
}

TEST(AttentionRefuses, negative_and_huge_positions) {
  for (const int64_t position : {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 40}) {
    for (const int ring : {0, 4}) {
      const Setting s{.name = "one", .window = ring, .ring = ring};
      Cache cache(s, 8);
      OpCall call("mote.attention");
      const Owned q = random_floats({1, 4, 1, 16}, 1), k = random_floats({1, 2, 1, 16}, 2),
                  where = integers({1, 1}, {position});
      call.input(q).input(k).input(k).input(where).output(DType::kFloat32, {1, 1, 4, 16}).state(state_shape(s));
      call.caches(&cache.caches).integers("state", {0}).number("scale", 1).integers("window", {ring});
      EXPECT_EQ(Code::kInvalidArgument, call.run().code()) << position;
    }
  }
}

struct Operands {
  Shape q{1, 4, 3, 16}, k{1, 2, 3, 16}, v{1, 2, 3, 16}, positions{1, 3}, out{1, 3, 4, 16};
  int64_t state = 0, window = 0;
};

bool accepted(const Operands& o, const StateShape& shape) {
  OpCall call("mote.attention");
  const Owned q = make(DType::kFloat32, o.q), k = make(DType::kFloat32, o.k), v = make(DType::kFloat32, o.v);
  const Owned positions = make(DType::kInt64, o.positions);
  call.input(q).input(k).input(v).input(positions).output(DType::kFloat32, o.out).state(shape);
  call.integers("state", {o.state}).integers("window", {o.window}).number("scale", 1);
  return call.check().ok();
}

TEST(AttentionRefuses, operands_that_do_not_fit_the_state) {
  const Setting setting{.name = "plain"};
  const StateShape shape = state_shape(setting);
  EXPECT_TRUE(accepted({}, shape));
  EXPECT_FALSE(accepted({.q = {1, 3, 3, 16}, .out = {1, 3, 3, 16}}, shape));
  EXPECT_FALSE(accepted({.q = {2, 4, 3, 16}}, shape));
  EXPECT_FALSE(accepted({.q = {4, 3, 16}}, shape));
  EXPECT_FALSE(accepted({.k = {1, 2, 4, 16}}, shape));
  EXPECT_FALSE(accepted({.v = {1, 2, 3, 8}}, shape));
  EXPECT_FALSE(accepted({.positions = {1, 2}}, shape));
  EXPECT_FALSE(accepted({.out = {1, 4, 3, 16}}, shape));
  EXPECT_FALSE(accepted({.state = 1}, shape));
  EXPECT_FALSE(accepted({.state = -1}, shape));
  EXPECT_FALSE(accepted({.window = -1}, shape));
  StateShape ring = shape;
  ring.window = 4;
  EXPECT_FALSE(accepted({}, ring));
  EXPECT_FALSE(accepted({.window = 5}, ring));
  EXPECT_TRUE(accepted({.window = 4}, ring));
  StateShape recurrent = shape;
  recurrent.is_kv_cache = false;
  EXPECT_FALSE(accepted({}, recurrent));
  StateShape empty = shape;
  empty.num_heads = 0;
  EXPECT_FALSE(accepted({}, empty));
}

TEST(AttentionRefuses, operands_that_are_absent) {
  OpCall call("mote.attention");
  const Owned q = random_floats({1, 4, 1, 16}, 1);
  call.input(q).output(DType::kFloat32, {1, 1, 4, 16}).state(state_shape({.name = "plain"}));
  call.integers("state", {0}).number("scale", 1);
  EXPECT_FALSE(call.check().ok());
}

}  // namespace
}  // namespace mote::test
