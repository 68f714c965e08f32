// Every kernel of mote.attention that this CPU can run: the same bits from all of them, near softmax attention in
// double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "kernels/kernel.h"
#include "kernels/ops/attention/tasks.h"
#include "kernels/support/float_bits.h"
#include "tests/kernels/attention_harness.h"

namespace mote::test {
namespace {

std::vector<const Kernel*> runnable_kernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : all_kernels()) {
    if (kernel->role == AttentionKernel::kRole && detect_cpu_features().has_all(kernel->needs))
      kernels.push_back(kernel);
  }
  return kernels;
}

int pick(std::mt19937& random, std::initializer_list<int> choices) {
  return choices.begin()[random() % choices.size()];
}

Setting random_setting(std::mt19937& random, KvType type) {
  Setting s{.name = "random"};
  s.kv_heads = pick(random, {1, 2, 3});
  s.heads = s.kv_heads * pick(random, {1, 2, 4, 5, 9});
  s.head_dim = pick(random, {1, 7, 16, 24, 33, 64, 80, 96, 128, 256});
  s.value_dim = random() % 2 == 0 ? s.head_dim : pick(random, {1, 16, 24, 64, 65, 96, 130});
  if (random() % 3 == 0) s.window = pick(random, {1, 15, 40, 300});
  if (s.window != 0 && random() % 2 == 0) s.ring = s.window + pick(random, {0, 7});
  if (s.ring != 0) s.num_sinks = pick(random, {0, 3, 16, 270});
  s.sinks = random() % 4 == 0;
  s.alibi = random() % 4 == 0;
  s.softcap = random() % 4 == 0 ? 3.0f : 0.0f;
  s.type = type;
  return s;
}

// Rows of zeros, and rows that are large and small.
void disturb(Owned& x, std::mt19937& random) {
  const int64_t width = x.tensor.size(3), rows = x.count() / width;
  for (int64_t row = 0; row < rows; ++row) {
    const float factor = random() % 16 == 0 ? 0.0f : random() % 16 == 0 ? 30.0f : random() % 16 == 0 ? 1e-3f : 1.0f;
    for (int64_t i = 0; i < width; ++i) x.as<float>()[row * width + i] *= factor;
  }
}

bool same_numbers(const Owned& a, const Owned& b) {
  for (int64_t i = 0; i < a.count(); ++i) {
    const float x = a.as<float>()[i], y = b.as<float>()[i];
    if (std::isnan(x) != std::isnan(y) || (!std::isnan(x) && std::memcmp(&x, &y, sizeof(x)) != 0)) return false;
  }
  return true;
}

// The last `tokens` of a sequence, behind a cache that the fastest kernel has filled with the others.
class LastTokens {
 public:
  LastTokens(const Setting& s, const Sequence& sequence, int64_t context, int64_t tokens)
      : setting_(s),
        sequence_(sequence),
        cache_(s, capacity_for(s, context + tokens, std::max(context, tokens))),
        begin_(context),
        end_(context + tokens) {
    EXPECT_TRUE(context == 0 || attend(s, sequence, cache_, 0, context, 2, nullptr).ok());
  }

  Owned operator()(const Kernel& kernel, int threads) const {
    Cache cache = cache_;
    return run(kernel, threads, cache);
  }
  // What the kernel leaves in the cache.
  std::vector<std::byte> cached(const Kernel& kernel) const {
    Cache cache = cache_;
    run(kernel, 1, cache);
    return cache.memory;
  }

 private:
  Owned run(const Kernel& kernel, int threads, Cache& cache) const {
    Owned out;
    const auto* functions = static_cast<const AttentionKernel*>(kernel.functions);
    EXPECT_TRUE(attend_with(functions, setting_, sequence_, cache, begin_, end_, threads, &out).ok());
    return out;
  }

  const Setting& setting_;
  const Sequence& sequence_;
  Cache cache_;
  int64_t begin_, end_;
};

// The inverse of the rotation in docs/ops.md.
void turn_back(double* row, int64_t width) {
  const auto size = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(width)));
  const auto turn = [&](double* x) {
    std::vector<double> sums(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t k = 0; k < size; ++k) {
        sums[static_cast<size_t>(i)] += std::popcount(static_cast<uint64_t>(i & k)) % 2 == 1 ? -x[k] : x[k];
      }
    }
    for (int64_t i = 0; i < size; ++i) {
      const bool flipped = std::popcount(static_cast<uint64_t>(i & i >> 1)) % 2 == 1;
      x[i] = (flipped ? -1 : 1) * sums[static_cast<size_t>(i)] / std::sqrt(static_cast<double>(size));
    }
  };
  if (size != width) turn(row + width - size);
  turn(row);
}

// What a cache of this type holds of rows of `width` numbers.
std::vector<double> as_cached(KvType type, const Owned& given) {
  const int64_t width = given.tensor.size(3);
  const bool is_turned = type == KvType::kInt4 && width % 16 == 0;
  const Owned turned = is_turned ? rotated_rows(given) : Owned();
  const Owned& rows = is_turned ? turned : given;
  std::vector<double> held;
  for (int64_t begin = 0; begin < rows.count();) {
    const int64_t end = std::min(begin + kKvGroup, (begin / width + 1) * width);
    float highest = 0, lowest = 0;
    for (int64_t i = begin; i < end; ++i) {
      highest = std::max(highest, rows.as<float>()[i]);
      lowest = std::min(lowest, rows.as<float>()[i]);
    }
    const float furthest = highest > -lowest ? highest : lowest;
    const float scale = type == KvType::kInt8 ? std::fabs(furthest) / 127.0f : furthest / -8.0f;
    for (; begin < end; ++begin) {
      const float x = rows.as<float>()[begin];
      const float code =
          scale != 0 ? std::min(std::nearbyintf(x / scale), type == KvType::kInt8 ? 127.0f : 7.0f) : 0.0f;
      if (type == KvType::kFloat32) held.push_back(static_cast<double>(x));
      if (type == KvType::kFloat16) held.push_back(static_cast<double>(float16_to_float32(float32_to_float16(x))));
      if (type == KvType::kInt8 || type == KvType::kInt4)
        held.push_back(static_cast<double>(scale) * static_cast<double>(code));
    }
  }
  for (int64_t begin = 0; is_turned && begin < rows.count(); begin += width) turn_back(held.data() + begin, width);
  return held;
}

// Over codes, queries and weights have 16 bits; some queries here have scores of up to 50.
double tolerance(KvType type) { return type == KvType::kFloat32 || type == KvType::kFloat16 ? 2e-5 : 3e-3; }

class AttentionKernels : public testing::TestWithParam<KvType> {};

TEST_P(AttentionKernels, agree_to_the_bit_and_with_softmax_in_double) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()) + 11);
  for (int round = 0; round < 24; ++round) {
    Setting s = random_setting(random, GetParam());
    if (s.head_dim >= 16 && round % 3 == 2) {
      s.values_in_keys = true;
      s.value_dim = std::max(16, (s.head_dim - round % 2 * 8) / 16 * 16);
    }
    const int64_t tokens = 1 + static_cast<int64_t>(random() % 70);
    const int64_t context = static_cast<int64_t>(random() % (round % 4 == 0 ? 630 : 60));
    Sequence sequence = random_sequence(s, context + tokens, static_cast<uint32_t>(random()));
    disturb(sequence.q, random);
    disturb(sequence.v, random);
    sequence.queries = to_doubles(sequence.q);
    sequence.keys = as_cached(s.type, sequence.k);
    sequence.values = as_cached(s.type, sequence.v);
    if (s.values_in_keys) take_values_from_keys(s, sequence);
    const std::vector<const Kernel*> kernels = runnable_kernels();
    ASSERT_FALSE(kernels.empty());
    const LastTokens last_tokens(s, sequence, context, tokens);
    const Owned first = last_tokens(*kernels[0], 3);
    const std::string what =
        "heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " of " + std::to_string(s.head_dim) +
        " and " + std::to_string(s.value_dim) + ", " + std::to_string(tokens) + " after " + std::to_string(context) +
        ", window " + std::to_string(s.window) + " of " + std::to_string(s.ring) + " + " + std::to_string(s.num_sinks);
    const double error = relative_error(first.as<float>(), expected_rows(s, sequence, context, context + tokens));
    // Sums of the keys that were scored err as the scores do, and not by chance.
    EXPECT_LT(error, tolerance(GetParam()) * (s.values_in_keys ? 4 : 1)) << kernels[0]->name << ": " << what;
    const bool has_own_groups = s.type != KvType::kInt4 && (s.type != KvType::kInt8 || s.value_dim % kKvGroup == 0);
    if (s.values_in_keys && has_own_groups) {  // as if the cache held the values beside the keys
      Setting beside = s;
      beside.values_in_keys = false;
      EXPECT_TRUE(same_numbers(first, LastTokens(beside, sequence, context, tokens)(*kernels[0], 2))) << what;
    }
    for (size_t i = 1; i < kernels.size(); ++i) {
      const Owned other = last_tokens(*kernels[i], static_cast<int>(i));
      EXPECT_TRUE(same_numbers(first, other)) << kernels[i]->name << ": " << what;
    }
  }
}

TEST_P(AttentionKernels, write_caches_alike) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()) + 31);
  for (int round = 0; round < 8; ++round) {
    Setting s = random_setting(random, GetParam());
    s.values_in_keys = s.value_dim <= s.head_dim && s.value_dim % 16 == 0;
    const int64_t context = static_cast<int64_t>(random() % 20), tokens = 1 + static_cast<int64_t>(random() % 40);
    Sequence sequence = random_sequence(s, context + tokens, static_cast<uint32_t>(random()));
    disturb(sequence.k, random);
    disturb(sequence.v, random);
    const LastTokens last_tokens(s, sequence, context, tokens);
    const std::vector<const Kernel*> kernels = runnable_kernels();
    const std::vector<std::byte> first = last_tokens.cached(*kernels[0]);
    for (const Kernel* kernel : kernels) EXPECT_EQ(first, last_tokens.cached(*kernel)) << kernel->name;
  }
}

TEST_P(AttentionKernels, keep_numbers_that_are_not_finite_in_their_rows) {
  const Setting s{.name = "odd", .heads = 6, .kv_heads = 2, .head_dim = 72, .value_dim = 40, .type = GetParam()};
  constexpr int64_t kContext = 300, kTokens = 9;
  const Sequence clean = random_sequence(s, kContext + kTokens, 5);
  const LastTokens clean_tokens(s, clean, kContext, kTokens);
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    Sequence sequence = random_sequence(s, kContext + kTokens, 5);
    sequence.q.as<float>()[(3 * (kContext + kTokens) + kContext + 4) * s.head_dim + 50] = bad;  // head 3, token 4
    const LastTokens spoilt_tokens(s, sequence, kContext, kTokens);
    for (const Kernel* kernel : runnable_kernels()) {
      const Owned expected = clean_tokens(*kernel, 2), out = spoilt_tokens(*kernel, 2);
      for (int64_t i = 0; i < out.count(); ++i) {
        const bool spoilt = i / s.value_dim == 4 * s.heads + 3;
        const float x = out.as<float>()[i];
        EXPECT_TRUE(spoilt ? std::isnan(x) : x == expected.as<float>()[i]) << kernel->name << " " << bad << " at " << i;
      }
    }
  }
}

// A value that is not finite spoils those who see it, alike in every kernel, and nobody else.
TEST_P(AttentionKernels, agree_about_values_that_are_not_finite) {
  const Setting s{.name = "odd", .heads = 4, .kv_heads = 2, .head_dim = 32, .value_dim = 48, .type = GetParam()};
  constexpr int64_t kContext = 290, kTokens = 20, kAll = kContext + kTokens;
  const Sequence clean = random_sequence(s, kAll, 6);
  for (const float bad : {std::nanf(""), INFINITY}) {
    Sequence sequence = random_sequence(s, kAll, 6);
    sequence.v.as<float>()[(kContext + 10) * s.value_dim + 20] = bad;
    sequence.k.as<float>()[(kAll + kContext + 15) * s.head_dim + 3] = bad;
    const std::vector<const Kernel*> kernels = runnable_kernels();
    const Owned expected = LastTokens(s, clean, kContext, kTokens)(*kernels[0], 1);
    const LastTokens last_tokens(s, sequence, kContext, kTokens);
    const Owned first = last_tokens(*kernels[0], 1);
    const int64_t before = 10 * s.heads * s.value_dim;
    EXPECT_EQ(0, std::memcmp(first.bytes.data(), expected.bytes.data(), static_cast<size_t>(before) * sizeof(float)));
    for (size_t i = 1; i < kernels.size(); ++i) {
      EXPECT_TRUE(same_numbers(first, last_tokens(*kernels[i], 2))) << kernels[i]->name;
    }
  }
}

std::string type_name(const testing::TestParamInfo<KvType>& info) {
  constexpr const char* kNames[] = {"float32", "float16", "int8", "int4"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(CacheTypes, AttentionKernels,
                         testing::Values(KvType::kFloat32, KvType::kFloat16, KvType::kInt8, KvType::kInt4), type_name);

}  // namespace
}  // namespace mote::test
