// mote.attention against softmax attention in double over everything that was appended.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

struct Setting {
  const char* name;
  int heads = 4, kv_heads = 2, head_dim = 16, value_dim = 16;
  int window = 0;        // of the op
  int ring = 0;          // window of the cache; 0: keeps everything
  int num_sinks = 0;     // positions that the ring keeps
  bool sinks = false, alibi = false;
  float softcap = 0;
  KvType type = KvType::kFloat32;
  double tolerance = 3e-6;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

// A cache with memory of its own.
struct Cache {
  Cache(const Setting& s, int64_t capacity) {
    KvCache cache;
    cache.type = s.type;
    cache.num_heads = s.kv_heads;
    cache.head_dim = s.head_dim;
    cache.value_head_dim = s.value_dim;
    cache.window = s.ring;
    cache.num_sinks = s.num_sinks;
    cache.capacity = capacity;
    positions.resize(static_cast<size_t>(cache.num_slots()), -1);
    const auto blocks = static_cast<size_t>(cache.num_slots() / kKvBlockSlots * s.kv_heads);
    keys.resize(blocks * static_cast<size_t>(kv_key_block_bytes(s.type, s.head_dim)));
    values.resize(blocks * static_cast<size_t>(kv_value_block_bytes(s.type, s.value_dim)));
    cache.keys = keys.data();
    cache.values = values.data();
    cache.positions = positions.data();
    caches.push_back(cache);
  }
  std::vector<std::byte> keys, values;
  std::vector<int64_t> positions;
  std::vector<KvCache> caches;
};

struct Sequence {
  Owned q, k, v;  // [1, heads, T, width]
  Owned sinks, slopes;
  std::vector<double> queries, keys, values;
};

Sequence random_sequence(const Setting& s, int64_t tokens, uint32_t seed) {
  Sequence sequence;
  sequence.q = random_floats({1, s.heads, tokens, s.head_dim}, seed);
  sequence.k = random_floats({1, s.kv_heads, tokens, s.head_dim}, seed + 1);
  sequence.v = random_floats({1, s.kv_heads, tokens, s.value_dim}, seed + 2);
  sequence.sinks = random_floats({s.heads}, seed + 3);
  sequence.slopes = random_floats({s.heads}, seed + 4, 0.1f);
  sequence.queries = to_doubles(sequence.q);
  sequence.keys = to_doubles(sequence.k);
  sequence.values = to_doubles(sequence.v);
  return sequence;
}

// Tokens [begin, end) of x [1, H, T, D], laid out as a projection gives them: [1, T, H, D] in memory.
Owned tokens_of(const Owned& x, int64_t begin, int64_t end) {
  const int64_t heads = x.tensor.size(1), tokens = x.tensor.size(2), width = x.tensor.size(3);
  std::vector<float> values;
  for (int64_t h = 0; h < heads; ++h) {
    const float* from = x.as<float>() + (h * tokens + begin) * width;
    values.insert(values.end(), from, from + (end - begin) * width);
  }
  return with_layout(floats({1, heads, end - begin, width}, values), {0, 2, 1, 3});
}

StateShape state_shape(const Setting& s) {
  StateShape shape;
  shape.is_kv_cache = true;
  shape.num_heads = s.kv_heads;
  shape.head_dim = s.head_dim;
  shape.value_head_dim = s.value_dim;
  shape.window = s.ring;
  return shape;
}

Status attend(const Setting& s, const Sequence& sequence, Cache& cache, int64_t begin, int64_t end, int threads, Owned* out,
              bool append = true) {
  OpCall call("mote.attention");
  std::vector<int64_t> positions;
  for (int64_t p = begin; p < end; ++p) positions.push_back(p);
  const Owned q = tokens_of(sequence.q, begin, end), k = tokens_of(sequence.k, begin, end), v = tokens_of(sequence.v, begin, end);
  const Owned where = integers({1, end - begin}, positions);
  call.input(q);
  append ? call.input(k).input(v) : call.absent().absent();
  call.input(where);
  s.sinks ? call.input(sequence.sinks) : call.absent();
  s.alibi ? call.input(sequence.slopes) : call.absent();
  call.output(DType::kFloat32, {1, end - begin, s.heads, s.value_dim}).state(state_shape(s)).caches(&cache.caches);
  call.integers("state", {0}).number("scale", 0.3).integers("window", {s.window}).number("softcap", s.softcap);
  const Status status = call.run(threads);
  if (status.ok() && out != nullptr) *out = std::move(call.result());
  return status;
}

// Attention of query `t` in double.
std::vector<double> expected_row(const Setting& s, const Sequence& sequence, int64_t t, int64_t head) {
  const std::vector<double>&q = sequence.queries, &k = sequence.keys, &v = sequence.values;
  const int64_t tokens = sequence.q.tensor.size(2), kv = head / (s.heads / s.kv_heads);
  std::vector<double> scores, result(static_cast<size_t>(s.value_dim), 0.0);
  std::vector<int64_t> seen;
  for (int64_t p = 0; p <= t; ++p) {
    if (s.window != 0 && p <= t - s.window && p >= s.num_sinks) continue;
    double score = 0;
    for (int64_t d = 0; d < s.head_dim; ++d) {
      score += q[static_cast<size_t>((head * tokens + t) * s.head_dim + d)] * k[static_cast<size_t>((kv * tokens + p) * s.head_dim + d)];
    }
    score *= static_cast<double>(0.3f);
    if (s.softcap != 0) score = std::tanh(score / static_cast<double>(s.softcap)) * static_cast<double>(s.softcap);
    if (s.alibi) score += static_cast<double>(sequence.slopes.as<float>()[head]) * static_cast<double>(p - t);
    scores.push_back(score);
    seen.push_back(p);
  }
  double total = s.sinks ? std::exp(static_cast<double>(sequence.sinks.as<float>()[head])) : 0.0;
  for (const double score : scores) total += std::exp(score);
  for (size_t i = 0; i < seen.size(); ++i) {
    for (int64_t d = 0; d < s.value_dim; ++d) {
      result[static_cast<size_t>(d)] += std::exp(scores[i]) / total * v[static_cast<size_t>((kv * tokens + seen[i]) * s.value_dim + d)];
    }
  }
  return result;
}

std::vector<double> expected_rows(const Setting& s, const Sequence& sequence, int64_t begin, int64_t end) {
  std::vector<double> rows;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t head = 0; head < s.heads; ++head) {
      const std::vector<double> row = expected_row(s, sequence, t, head);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return rows;
}

int64_t capacity_for(const Setting& s, int64_t context, int64_t chunk) {
  return s.ring == 0 ? context : s.num_sinks + s.ring + chunk - 1;
}

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
      EXPECT_LT(relative_error(out.as<float>(), expected_rows(s, sequence, begin, end)), s.tolerance) << chunk << " at " << begin;
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
                               static_cast<size_t>(end - begin) * row_bytes)) << chunk << " at " << begin;
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
      {.name = "float16", .type = KvType::kFloat16, .tolerance = 2e-3},
      {.name = "int8", .head_dim = 40, .value_dim = 33, .type = KvType::kInt8, .tolerance = 3e-2},
      {.name = "int4", .head_dim = 40, .value_dim = 33, .type = KvType::kInt4, .tolerance = 0.4},
      {.name = "int4_ring", .head_dim = 7, .value_dim = 64, .window = 12, .ring = 12, .type = KvType::kInt4, .tolerance = 0.4},
  };
}

INSTANTIATE_TEST_SUITE_P(Settings, Attention, testing::ValuesIn(settings()),
                         [](const auto& one) { return std::string(one.param.name); });

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
      const Owned q = random_floats({1, 4, 1, 16}, 1), k = random_floats({1, 2, 1, 16}, 2), where = integers({1, 1}, {position});
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
