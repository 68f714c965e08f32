// mote.attention over chunks, chosen keys and biases by distance, and mote.indexer, which chooses keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/kernels/attention_harness.h"

namespace mote::test {
namespace {

constexpr int64_t kTokens = 300;  // two splits

// What a call has beside queries, keys and values; rows of tokens [0, kTokens).
struct Sight {
  const char* name;
  int window = 0;
  bool is_chunked = false;
  int64_t num_chosen = 0;
  int64_t num_biases = 0;
  bool sinks_of_tokens = false;
  KvType type = KvType::kFloat32;
  double tolerance = 3e-6;
  int64_t stride = 1;
  bool is_compact = false;  // the cache keeps what the stride leaves

  // What gives the logarithm of the divisor too.
  bool has_lse() const { return stride > 1 || sinks_of_tokens; }
};

std::ostream& operator<<(std::ostream& out, const Sight& sight) { return out << sight.name; }

Setting setting_of(const Sight& sight) {
  return {.name = "sparse",
          .window = sight.window,
          .ring = sight.window,
          .type = sight.type,
          .stride = sight.is_compact ? static_cast<int>(sight.stride) : 1};
}

struct Text {
  explicit Text(const Sight& sight, uint32_t seed) : sequence(random_sequence(setting_of(sight), kTokens, seed)) {
    biases = random_floats({1, kTokens, 4, std::max<int64_t>(1, sight.num_biases)}, seed + 7);
    sinks = random_floats({1, kTokens, 4}, seed + 8);
    // Two groups of keys' heads: every third and every fifth position, as many as fit, -1 before them.
    for (int64_t t = 0; t < kTokens; ++t) {
      for (const int64_t step : {3, 5}) {
        std::vector<int64_t> row;
        for (int64_t p = t % step; p <= t; p += step) row.push_back(p);
        while (static_cast<int64_t>(row.size()) > sight.num_chosen) row.erase(row.begin());
        row.insert(row.begin(), static_cast<size_t>(sight.num_chosen) - row.size(), -1);
        chosen.insert(chosen.end(), row.begin(), row.end());
      }
    }
  }

  Sequence sequence;
  Owned biases, sinks;
  std::vector<int64_t> chosen;
};

Owned rows_of(const Owned& x, int64_t begin, int64_t end) {
  const int64_t row = x.tensor.num_elements() / kTokens;
  Shape sizes{1, end - begin, x.tensor.size(2)};
  if (x.tensor.rank == 4) sizes.push_back(x.tensor.size(3));
  return floats(sizes, std::vector<float>(x.as<float>() + begin * row, x.as<float>() + end * row));
}

Status attend_part(const Sight& sight, const Text& text, Cache& cache, int64_t begin, int64_t end, int threads,
                   Owned* out, Owned* lse = nullptr) {
  const Setting s = setting_of(sight);
  std::vector<int64_t> positions(static_cast<size_t>(end - begin));
  std::iota(positions.begin(), positions.end(), begin);
  OpCall call(lse == nullptr ? "mote.attention" : "mote.attention_lse");
  call.input(tokens_of(text.sequence.q, begin, end)).input(tokens_of(text.sequence.k, begin, end));
  call.input(tokens_of(text.sequence.v, begin, end)).input(integers({1, end - begin}, positions));
  sight.sinks_of_tokens ? call.input(rows_of(text.sinks, begin, end)) : call.absent();
  call.absent();
  if (sight.num_chosen > 0) {
    const int64_t width = 2 * sight.num_chosen;
    call.input(integers({1, end - begin, 2, sight.num_chosen},
                        std::vector<int64_t>(text.chosen.begin() + begin * width, text.chosen.begin() + end * width)));
  } else {
    call.absent();
  }
  sight.num_biases > 0 ? call.input(rows_of(text.biases, begin, end)) : call.absent();
  call.output(DType::kFloat32, {1, end - begin, s.heads, s.value_dim}).state(state_shape(s)).caches(&cache.caches);
  if (lse != nullptr) call.output(DType::kFloat32, {1, end - begin, s.heads});
  call.integers("state", {0}).number("scale", 0.3).integers("window", {s.window});
  call.integers("chunked", {sight.is_chunked ? 1 : 0}).integers("stride", {sight.stride});
  const Status status = call.run(threads);
  if (status.ok()) *out = std::move(call.result());
  if (status.ok() && lse != nullptr) *lse = std::move(call.result(1));
  return status;
}

bool sees(const Sight& sight, const Text& text, int64_t t, int64_t p, int64_t group) {
  if (sight.is_chunked && p / sight.window != t / sight.window) return false;
  if ((p + 1) % sight.stride != 0 || sight.num_chosen == 0) return (p + 1) % sight.stride == 0;
  const auto row = text.chosen.begin() + (t * 2 + group) * sight.num_chosen;
  return std::find(row, row + sight.num_chosen, p) != row + sight.num_chosen;
}

std::vector<double> expected_of(const Sight& sight, const Text& text, int64_t t, int64_t head, double* lse) {
  const Setting s = setting_of(sight);
  const int64_t group = head / 2;
  std::vector<double> result(static_cast<size_t>(s.value_dim), 0.0);
  double total = sight.sinks_of_tokens ? std::exp(static_cast<double>(text.sinks.as<float>()[t * 4 + head])) : 0.0;
  for (int64_t p = 0; p <= t; ++p) {
    if (!sees(sight, text, t, p, group)) continue;
    double score = 0;
    for (int64_t d = 0; d < s.head_dim; ++d) {
      score += text.sequence.queries[static_cast<size_t>((head * kTokens + t) * s.head_dim + d)] *
               text.sequence.keys[static_cast<size_t>((group * kTokens + p) * s.head_dim + d)];
    }
    score *= static_cast<double>(0.3f);
    if (t - p < sight.num_biases) {
      score += static_cast<double>(text.biases.as<float>()[(t * 4 + head) * sight.num_biases + t - p]);
    }
    total += std::exp(score);
    for (int64_t d = 0; d < s.value_dim; ++d) {
      result[static_cast<size_t>(d)] +=
          std::exp(score) * text.sequence.values[static_cast<size_t>((group * kTokens + p) * s.value_dim + d)];
    }
  }
  *lse = std::log(total);
  for (double& value : result) value = total == 0 ? 0.0 : value / total;
  return result;
}

class SparseAttention : public testing::TestWithParam<Sight> {};

TEST_P(SparseAttention, agrees_with_softmax_in_double_for_all_chunks_and_threads) {
  const Sight& sight = GetParam();
  const Text text(sight, 1);
  std::vector<double> expected, logarithms;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t head = 0; head < 4; ++head) {
      const std::vector<double> row = expected_of(sight, text, t, head, &logarithms.emplace_back());
      expected.insert(expected.end(), row.begin(), row.end());
    }
  }
  Owned whole, lse;
  Cache all(setting_of(sight), capacity_for(setting_of(sight), kTokens, kTokens));
  ASSERT_TRUE(attend_part(sight, text, all, 0, kTokens, 3, &whole, sight.has_lse() ? &lse : nullptr).ok());
  EXPECT_LT(relative_error(whole.as<float>(), expected), sight.tolerance);
  for (size_t i = 0; sight.has_lse() && i < logarithms.size(); ++i) {
    const auto found = static_cast<double>(lse.as<float>()[i]);
    EXPECT_TRUE(found == logarithms[i] || std::abs(found - logarithms[i]) < 1e-5) << i << ": " << found;
  }
  for (const int64_t chunk : {int64_t{1}, int64_t{64}}) {
    Cache cache(setting_of(sight), capacity_for(setting_of(sight), kTokens, chunk));
    for (int64_t begin = 0; begin < kTokens; begin += chunk) {
      const int64_t end = std::min(kTokens, begin + chunk);
      Owned out;
      ASSERT_TRUE(attend_part(sight, text, cache, begin, end, static_cast<int>(begin % 4) + 1, &out).ok());
      EXPECT_EQ(0, std::memcmp(out.bytes.data(), whole.as<float>() + begin * 64, out.bytes.size()))
          << chunk << " at " << begin;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sights, SparseAttention,
    testing::Values(
        Sight{.name = "chunks", .window = 24, .is_chunked = true}, Sight{.name = "few", .num_chosen = 7},
        Sight{.name = "more_than_there_are", .num_chosen = 120}, Sight{.name = "biases", .num_biases = 37},
        Sight{.name = "sinks_of_tokens", .num_chosen = 20, .sinks_of_tokens = true},
        Sight{.name = "strides", .stride = 5}, Sight{.name = "long_strides", .sinks_of_tokens = true, .stride = 128},
        Sight{.name = "compact", .stride = 5, .is_compact = true},
        Sight{.name = "compact_and_chosen", .num_chosen = 20, .stride = 4, .is_compact = true},
        Sight{.name = "compact_and_long", .sinks_of_tokens = true, .stride = 128, .is_compact = true},
        Sight{.name = "int8", .num_chosen = 20, .type = KvType::kInt8, .tolerance = 3e-2},
        Sight{.name = "all", .num_chosen = 9, .num_biases = 400, .type = KvType::kFloat16, .tolerance = 2e-3}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(SparseAttentionRefuses, what_it_cannot_read) {
  const Sight plain{.name = "plain"};
  const Text text(plain, 3);
  for (const Shape& sizes : {Shape{1, 4, 3, 2}, Shape{1, 5, 1, 2}, Shape{4, 1, 2}}) {
    const Setting s = setting_of(plain);
    Cache cache(s, 8);
    OpCall call("mote.attention");
    call.input(tokens_of(text.sequence.q, 0, 4)).input(tokens_of(text.sequence.k, 0, 4));
    call.input(tokens_of(text.sequence.v, 0, 4)).input(integers({1, 4}, {0, 1, 2, 3})).absent().absent();
    const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    call.input(integers(sizes, std::vector<int64_t>(static_cast<size_t>(count), 0)));
    call.output(DType::kFloat32, {1, 4, s.heads, s.value_dim}).state(state_shape(s)).caches(&cache.caches);
    call.integers("state", {0}).number("scale", 1);
    EXPECT_EQ(Code::kInvalidProgram, call.run().code());
  }
}

TEST(SparseAttentionRefuses, strides_of_windows_and_of_nothing) {
  const Text text(Sight{.name = "plain"}, 3);
  for (const Sight& sight : {Sight{.name = "window", .window = 24, .stride = 2}, Sight{.name = "none", .stride = 0}}) {
    Cache cache(setting_of(sight), capacity_for(setting_of(sight), kTokens, 4));
    Owned out;
    EXPECT_EQ(Code::kInvalidProgram, attend_part(sight, text, cache, 0, 4, 1, &out).code()) << sight;
  }
}

TEST(SparseAttentionRefuses, a_cache_of_another_stride_and_distances_with_one) {
  const Sight biased{.name = "biased", .num_biases = 3, .stride = 4, .is_compact = true};
  const Text text(biased, 3);
  Cache cache(setting_of(biased), kTokens);
  Owned out;
  EXPECT_EQ(Code::kInvalidProgram, attend_part(biased, text, cache, 0, 4, 1, &out).code());
  Sight other = biased;
  other.num_biases = 0;
  EXPECT_TRUE(attend_part(other, text, cache, 0, 4, 1, &out).ok());
  OpCall call("mote.attention");
  call.input(tokens_of(text.sequence.q, 0, 4)).input(tokens_of(text.sequence.k, 0, 4));
  call.input(tokens_of(text.sequence.v, 0, 4)).input(integers({1, 4}, {0, 1, 2, 3}));
  call.output(DType::kFloat32, {1, 4, 4, 16}).state(state_shape(setting_of(biased))).caches(&cache.caches);
  call.integers("state", {0}).number("scale", 0.3).integers("stride", {2});
  EXPECT_EQ(Code::kInvalidProgram, call.run().code());
}

// A cache that keeps what a stride leaves takes the memory of that, and gives the same bits after going back.
TEST(SparseAttention, a_compact_cache_is_written_over_where_the_text_changes) {
  const Sight sight{.name = "compact", .stride = 5, .is_compact = true};
  const Text text(sight, 6), other(sight, 60);
  const int64_t capacity = capacity_for(setting_of(sight), kTokens, kTokens);
  Cache cache(setting_of(sight), capacity), fresh(setting_of(sight), capacity);
  EXPECT_EQ(cache.caches[0].num_slots(), 64);
  Owned out, expected;
  ASSERT_TRUE(attend_part(sight, text, fresh, 0, 250, 1, &out).ok());
  ASSERT_TRUE(attend_part(sight, text, fresh, 250, 290, 1, &expected).ok());
  ASSERT_TRUE(attend_part(sight, text, cache, 0, 250, 1, &out).ok());
  ASSERT_TRUE(attend_part(sight, other, cache, 250, 300, 1, &out).ok());
  ASSERT_TRUE(attend_part(sight, text, cache, 250, 290, 1, &out).ok());
  EXPECT_TRUE(same_bits(expected, out));
}

// Positions that name nothing, in no order: nothing is read out of bounds, and what nobody sees gives 0.
TEST(SparseAttention, bears_any_positions) {
  const Sight sight{.name = "any", .num_chosen = 5};
  Text text(sight, 4);
  for (size_t i = 0; i < text.chosen.size(); ++i) {
    const int64_t values[] = {INT64_MAX, INT64_MIN, 299, -7, int64_t{1} << 40};
    text.chosen[i] = values[i % 5];
  }
  Cache cache(setting_of(sight), kTokens);
  Owned out;
  ASSERT_TRUE(attend_part(sight, text, cache, 0, 3, 1, &out).ok());
  for (int64_t i = 0; i < 3 * 64; ++i) EXPECT_EQ(out.as<float>()[i], 0.0f);
}

struct IndexerSetting {
  int heads = 6, groups = 2, width = 16;
  int64_t topk = 9, block = 1, stride = 1;
  bool is_compact = false;

  int64_t size() const { return block * stride; }
  int64_t num_chosen() const { return topk * block + block - 1; }
  KvType type = KvType::kFloat32;

  Setting shape() const {
    const int of_cache = is_compact ? static_cast<int>(stride) : 1;
    return {.name = "indexer", .kv_heads = groups, .head_dim = width, .value_dim = 1, .stride = of_cache};
  }
};

struct IndexerText {
  IndexerText(const IndexerSetting& s, uint32_t seed) {
    q = random_floats({1, s.heads, kTokens, s.width}, seed);
    k = random_floats({1, s.groups, kTokens, s.width}, seed + 1);
    weights = random_floats({1, kTokens, s.heads}, seed + 2);
  }
  Owned q, k, weights;
};

Status index_part(const IndexerSetting& s, const IndexerText& text, Cache& cache, int64_t begin, int64_t end,
                  int threads, Owned* out) {
  std::vector<int64_t> positions(static_cast<size_t>(end - begin));
  std::iota(positions.begin(), positions.end(), begin);
  OpCall call("mote.indexer");
  call.input(tokens_of(text.q, begin, end)).input(tokens_of(text.k, begin, end));
  call.input(integers({1, end - begin}, positions)).input(rows_of(text.weights, begin, end));
  call.output(DType::kInt64, {1, end - begin, s.groups, s.num_chosen()});
  call.state(state_shape(s.shape())).caches(&cache.caches);
  call.integers("state", {0}).integers("topk", {s.topk}).integers("block", {s.block});
  call.integers("stride", {s.stride});
  const Status status = call.run(threads);
  if (status.ok()) *out = std::move(call.result());
  return status;
}

std::vector<int64_t> best_positions(const IndexerSetting& s, const IndexerText& text, int64_t t, int64_t group) {
  const std::vector<double> q = to_doubles(text.q), k = to_doubles(text.k);
  std::vector<std::pair<double, int64_t>> scores;  // negative, so that sorting puts the best first
  for (int64_t last = s.size() - 1; last <= t; last += s.size()) {
    double sum = 0;
    for (int64_t h = group * s.heads / s.groups; h < (group + 1) * s.heads / s.groups; ++h) {
      double product = 0;
      for (int64_t d = 0; d < s.width; ++d) {
        product += q[static_cast<size_t>((h * kTokens + t) * s.width + d)] *
                   k[static_cast<size_t>((group * kTokens + last) * s.width + d)];
      }
      sum += static_cast<double>(text.weights.as<float>()[t * s.heads + h]) * std::max(product, 0.0);
    }
    scores.emplace_back(-sum, last / s.size());
  }
  std::sort(scores.begin(), scores.end());
  scores.resize(std::min(scores.size(), static_cast<size_t>(s.topk)));
  std::vector<int64_t> found;
  for (const auto& [score, block] : scores) {
    const int64_t end = (block + 1) * s.size();
    for (int64_t p = end - s.block; p < end; ++p) found.push_back(p);
  }
  if (s.stride == 1) {
    for (int64_t p = (t + 1) / s.block * s.block; p <= t; ++p) found.push_back(p);
  }
  std::sort(found.begin(), found.end());
  found.insert(found.begin(), static_cast<size_t>(s.num_chosen()) - found.size(), -1);
  return found;
}

TEST(Indexer, finds_the_best_positions_for_all_chunks_and_threads) {
  for (const IndexerSetting& s : {IndexerSetting{}, IndexerSetting{.heads = 130, .groups = 1, .topk = 40},
                                  IndexerSetting{.groups = 1, .topk = 5, .block = 4}, IndexerSetting{.topk = 1000},
                                  IndexerSetting{.groups = 1, .topk = 7, .stride = 4},
                                  IndexerSetting{.topk = 7, .stride = 4, .is_compact = true}}) {
    const IndexerText text(s, 5);
    const int64_t width = s.num_chosen();
    for (const int64_t chunk : {int64_t{37}, kTokens}) {
      Cache cache(s.shape(), kTokens);
      for (int64_t begin = 0; begin < kTokens; begin += chunk) {
        const int64_t end = std::min(kTokens, begin + chunk);
        Owned out;
        const Status status = index_part(s, text, cache, begin, end, static_cast<int>(begin % 3) + 1, &out);
        ASSERT_TRUE(status.ok()) << status.message();
        for (int64_t t = begin; t < end; t += 23) {
          for (int64_t group = 0; group < s.groups; ++group) {
            const int64_t* row = out.as<int64_t>() + ((t - begin) * s.groups + group) * width;
            EXPECT_EQ(std::vector<int64_t>(row, row + width), best_positions(s, text, t, group)) << t << " " << chunk;
          }
        }
      }
    }
  }
}

TEST(Indexer, goes_back_and_refuses_what_does_not_fit) {
  const IndexerSetting s{};
  const IndexerText text(s, 6), other(s, 60);
  Cache cache(s.shape(), 64), fresh(s.shape(), 64);
  Owned expected, out;
  ASSERT_TRUE(index_part(s, text, fresh, 0, 30, 1, &out).ok());
  ASSERT_TRUE(index_part(s, text, fresh, 30, 40, 1, &expected).ok());
  ASSERT_TRUE(index_part(s, text, cache, 0, 30, 1, &out).ok());
  ASSERT_TRUE(index_part(s, other, cache, 30, 60, 1, &out).ok());
  ASSERT_TRUE(index_part(s, text, cache, 30, 40, 1, &out).ok());
  EXPECT_TRUE(same_bits(expected, out));
  EXPECT_EQ(Code::kContextFull, index_part(s, text, cache, 60, 70, 1, &out).code());
  EXPECT_EQ(Code::kInvalidProgram, index_part({.topk = 0}, text, cache, 0, 4, 1, &out).code());
  EXPECT_EQ(Code::kInvalidProgram, index_part({.block = 2, .stride = 2}, text, cache, 0, 4, 1, &out).code());
}

}  // namespace
}  // namespace mote::test
