// mote.attention over the caches of several sequences in one call: the bits that each would get alone.
#include <gtest/gtest.h>

#include <random>

#include "tests/kernels/attention_harness.h"

namespace mote::test {
namespace {

// The `tokens` tokens from position `begin` on, behind a cache of all before. Copies refer to the tokens of the first.
struct Part {
  Setting setting;
  Sequence sequence;
  Cache cache;
  int64_t begin, tokens;

  Part(const Setting& s, int64_t context, int64_t num_tokens, uint32_t seed)
      : setting(s),
        sequence(random_sequence(s, context + num_tokens, seed)),
        cache(s, s.ring == 0 ? context + num_tokens : s.num_sinks + s.ring + std::max(context, num_tokens)),
        begin(context),
        tokens(num_tokens) {
    Setting filling = s;
    filling.window = 1;  // only the cache is wanted: each query sees one key, not all before it
    EXPECT_TRUE(context == 0 || attend(filling, sequence, cache, 0, context, 2, nullptr).ok());
  }
};

// Rows [.., T, ..] of all parts one behind the other, laid out as a projection gives them.
Owned joined(const std::vector<Part>& parts, Owned Sequence::* field) {
  const int64_t heads = (parts[0].sequence.*field).tensor.size(1), width = (parts[0].sequence.*field).tensor.size(3);
  int64_t total = 0;
  for (const Part& part : parts) total += part.tokens;
  std::vector<float> values;
  for (int64_t head = 0; head < heads; ++head) {
    for (const Part& part : parts) {
      const Owned& x = part.sequence.*field;
      const float* from = x.as<float>() + (head * x.tensor.size(2) + part.begin) * width;
      values.insert(values.end(), from, from + part.tokens * width);
    }
  }
  return with_layout(floats({1, heads, total, width}, values), {0, 2, 1, 3});
}

Owned attend_together(std::vector<Part>& parts, int threads, bool append) {
  const Setting& s = parts[0].setting;
  std::vector<int64_t> positions;
  std::vector<SequenceStates> sequences;
  for (Part& part : parts) {
    for (int64_t t = 0; t < part.tokens; ++t) positions.push_back(part.begin + t);
    sequences.push_back({part.tokens, part.cache.caches, {}});
  }
  const auto total = static_cast<int64_t>(positions.size());
  const Owned q = joined(parts, &Sequence::q), k = joined(parts, &Sequence::k), v = joined(parts, &Sequence::v);
  const Owned where = integers({1, total}, positions);
  OpCall call("mote.attention");
  call.input(q);
  append ? call.input(k).input(v) : call.absent().absent();
  call.input(where);
  s.sinks ? call.input(parts[0].sequence.sinks) : call.absent();
  s.alibi ? call.input(parts[0].sequence.slopes) : call.absent();
  call.output(DType::kFloat32, {1, total, s.heads, s.value_dim}).state(state_shape(s)).sequences(&sequences);
  call.integers("state", {0}).number("scale", 0.3).integers("window", {s.window}).number("softcap", s.softcap);
  const Status status = call.run(threads);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(call.result());
}

// The parts in one call, and copies of them each in a call of its own.
void expect_same(const std::vector<Part>& parts, int threads, bool append) {
  std::vector<Part> together = parts, alone = parts;
  for (Part& part : alone) {  // learned sinks and slopes are the model's
    part.sequence.sinks.tensor = parts[0].sequence.sinks.tensor;
    part.sequence.slopes.tensor = parts[0].sequence.slopes.tensor;
  }
  const Owned out = attend_together(together, threads, append);
  const std::byte* row = out.bytes.data();
  for (size_t i = 0; i < parts.size(); ++i) {
    Owned expected;
    Part& part = alone[i];
    ASSERT_TRUE(
        attend(part.setting, part.sequence, part.cache, part.begin, part.begin + part.tokens, 1, &expected, append)
            .ok());
    EXPECT_EQ(0, std::memcmp(row, expected.bytes.data(), expected.bytes.size())) << "sequence " << i;
    row += expected.bytes.size();
    EXPECT_EQ(together[i].cache.positions, part.cache.positions) << "sequence " << i;
    EXPECT_TRUE(together[i].cache.memory == part.cache.memory) << "sequence " << i;
  }
}

constexpr KvType kTypes[] = {KvType::kFloat32, KvType::kFloat16, KvType::kInt8, KvType::kInt4};

TEST(AttentionOfSequences, gives_each_the_bits_that_it_gets_alone) {
  std::mt19937 random(11);
  const auto pick = [&](std::initializer_list<int> choices) { return choices.begin()[random() % choices.size()]; };
  for (int round = 0; round < 60; ++round) {
    Setting s{.name = "random"};
    s.kv_heads = pick({1, 2, 3});
    s.heads = s.kv_heads * pick({1, 4, 9});
    s.head_dim = pick({16, 33, 64});
    s.value_dim = pick({16, 64, 65});
    if (round % 3 == 0) s.window = pick({1, 15, 40, 300});
    if (s.window != 0 && round % 2 == 0) s.ring = s.window + pick({0, 7});
    if (s.ring != 0) s.num_sinks = pick({0, 3, 16});
    s.sinks = random() % 4 == 0;
    s.alibi = random() % 4 == 0;
    s.softcap = random() % 4 == 0 ? 3.0f : 0.0f;
    const int most_tokens = round % 4 == 3 ? 40 : 1;  // 40: tokens of one sequence fill several tiles
    std::vector<Part> parts;
    parts.reserve(9);
    const auto count = 1 + random() % 9;
    for (size_t i = 0; i < count; ++i) {
      s.type = kTypes[random() % 4];
      parts.emplace_back(s, pick({0, 1, 5, 16, 100, 257, 700}),
                         1 + static_cast<int64_t>(random() % static_cast<unsigned>(most_tokens)),
                         static_cast<uint32_t>(random()));
    }
    SCOPED_TRACE(round);
    expect_same(parts, 1 + round % 5, true);
  }
}

TEST(AttentionOfSequences, reads_the_caches_of_another_layer) {
  const Setting s{.name = "shared"};
  std::vector<Part> parts;
  parts.reserve(5);
  for (uint32_t i = 0; i < 5; ++i) {
    parts.emplace_back(s, 10 + 60 * i, 1, i);
    ASSERT_TRUE(
        attend(s, parts.back().sequence, parts.back().cache, parts.back().begin, parts.back().begin + 1, 1, nullptr)
            .ok());
  }
  for (const int threads : {1, 3}) expect_same(parts, threads, false);
}

TEST(AttentionOfSequences, refuses_a_position_that_one_of_them_does_not_hold) {
  const Setting s{.name = "full"};
  std::vector<Part> parts;
  parts.reserve(2);
  parts.emplace_back(s, 20, 1, 1);
  parts.emplace_back(s, 40, 1, 2);
  std::vector<SequenceStates> sequences{{1, parts[1].cache.caches, {}}, {1, parts[0].cache.caches, {}}};
  const Owned q = joined(parts, &Sequence::q), k = joined(parts, &Sequence::k), v = joined(parts, &Sequence::v);
  const Owned where = integers({1, 2}, {20, 40});
  OpCall call("mote.attention");
  call.input(q).input(k).input(v).input(where);
  call.output(DType::kFloat32, {1, 2, s.heads, s.value_dim}).state(state_shape(s)).sequences(&sequences);
  call.integers("state", {0}).number("scale", 0.3).integers("window", {0}).number("softcap", 0);
  const Status status = call.run(1);
  EXPECT_EQ(status.code(), Code::kContextFull);
  EXPECT_NE(status.message().find("position 40 does not fit"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace mote::test
