// Calls of mote.attention over a cache with memory of its own, and what they should give.
#pragma once

#include <algorithm>
#include <cmath>
#include <ostream>

#include "kernels/ops/attention/tasks.h"
#include "tests/kernels/harness.h"

namespace mote::test {

struct Setting {
  const char* name;
  int heads = 4, kv_heads = 2, head_dim = 16, value_dim = 16;
  int window = 0;     // of the op
  int ring = 0;       // window of the cache; 0: keeps everything
  int num_sinks = 0;  // positions that the ring keeps
  bool sinks = false, alibi = false;
  float softcap = 0;
  KvType type = KvType::kFloat32;
  double tolerance = 3e-6;
  bool bidirectional = false;
  bool values_in_keys = false;  // the first value_dim elements of each key
  int stride = 1;               // of the cache

  int cached_value_dim() const { return values_in_keys ? 0 : value_dim; }
};

inline std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

// A cache with memory of its own.
struct Cache {
  Cache(const Setting& s, int64_t capacity) {
    KvCache cache;
    cache.type = s.type;
    cache.num_heads = s.kv_heads;
    cache.head_dim = s.head_dim;
    cache.value_head_dim = s.cached_value_dim();
    cache.window = s.ring;
    cache.num_sinks = s.num_sinks;
    cache.stride = s.stride;
    cache.capacity = capacity;
    positions.resize(static_cast<size_t>(cache.num_slots()), -1);
    memory.resize(static_cast<size_t>((cache.page_bytes() * cache.num_pages()).value()));
    caches.push_back(cache);
    point();
  }
  Cache(const Cache& other) : memory(other.memory), positions(other.positions), caches(other.caches) { point(); }
  Cache& operator=(const Cache&) = delete;

  std::vector<std::byte> memory;
  std::vector<int64_t> positions;
  std::vector<KvCache> caches;

 private:
  void point() {
    KvCache& cache = caches[0];
    pages_.clear();
    for (int64_t i = 0; i < cache.num_pages(); ++i) pages_.push_back(memory.data() + i * cache.page_bytes().value());
    cache.pages = pages_.data();
    cache.positions = positions.data();
  }

  std::vector<std::byte*> pages_;
};

struct Sequence {
  Owned q, k, v;  // [1, heads, T, width]
  Owned sinks, slopes;
  std::vector<double> queries, keys, values;
};

// Makes the values what a cache without values has of the keys.
inline void take_values_from_keys(const Setting& s, Sequence& sequence) {
  for (int64_t row = 0; row < sequence.k.count() / s.head_dim; ++row) {
    const int64_t to = row * s.value_dim, from = row * s.head_dim;
    std::copy_n(sequence.k.as<float>() + from, s.value_dim, sequence.v.as<float>() + to);
    std::copy_n(sequence.keys.begin() + from, s.value_dim, sequence.values.begin() + to);
  }
}

inline Sequence random_sequence(const Setting& s, int64_t tokens, uint32_t seed) {
  Sequence sequence;
  sequence.q = random_floats({1, s.heads, tokens, s.head_dim}, seed);
  sequence.k = random_floats({1, s.kv_heads, tokens, s.head_dim}, seed + 1);
  sequence.v = random_floats({1, s.kv_heads, tokens, s.value_dim}, seed + 2);
  sequence.sinks = random_floats({s.heads}, seed + 3);
  sequence.slopes = random_floats({s.heads}, seed + 4, 0.1f);
  sequence.queries = to_doubles(sequence.q);
  sequence.keys = to_doubles(sequence.k);
  sequence.values = to_doubles(sequence.v);
  if (s.values_in_keys) take_values_from_keys(s, sequence);
  return sequence;
}

// Tokens [begin, end) of x [1, H, T, D], laid out as a projection gives them: [1, T, H, D] in memory.
inline Owned tokens_of(const Owned& x, int64_t begin, int64_t end) {
  const int64_t heads = x.tensor.size(1), tokens = x.tensor.size(2), width = x.tensor.size(3);
  std::vector<float> values;
  for (int64_t h = 0; h < heads; ++h) {
    const float* from = x.as<float>() + (h * tokens + begin) * width;
    values.insert(values.end(), from, from + (end - begin) * width);
  }
  return with_layout(floats({1, heads, end - begin, width}, values), {0, 2, 1, 3});
}

inline StateShape state_shape(const Setting& s) {
  StateShape shape;
  shape.is_kv_cache = true;
  shape.num_heads = s.kv_heads;
  shape.head_dim = s.head_dim;
  shape.value_head_dim = s.cached_value_dim();
  shape.window = s.ring;
  shape.stride = s.stride;
  return shape;
}

// Runs a call that `check` accepted with these functions.
inline Status run_with(const AttentionKernel* kernel, OpCall& call, std::vector<KvCache>& caches, int threads) {
  AttentionParams params = call.call().get_params<AttentionParams>();
  params.kernel = kernel;
  call.call().make_params<AttentionParams>() = params;
  const Op& op = *find_op("mote.attention");
  std::vector<std::byte> memory(op.scratch_bytes(call.call(), threads) + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  TestPool pool(threads);
  KernelContext context;
  context.threads = &pool;
  context.scratch = {aligned, memory.size() - 64};
  const SequenceStates sequence{call.result().tensor.size(1), caches, {}};
  context.sequences = {&sequence, 1};
  return op.run(call.call(), context);
}

// Tokens [begin, end) of the sequence; kernel: nullptr for the one that is chosen.
inline Status attend_with(const AttentionKernel* kernel, const Setting& s, const Sequence& sequence, Cache& cache,
                          int64_t begin, int64_t end, int threads, Owned* out, bool append = true) {
  OpCall call("mote.attention");
  std::vector<int64_t> positions;
  for (int64_t p = begin; p < end; ++p) positions.push_back(p);
  const Owned q = tokens_of(sequence.q, begin, end), k = tokens_of(sequence.k, begin, end),
              v = tokens_of(sequence.v, begin, end);
  const Owned where = integers({1, end - begin}, positions);
  call.input(q);
  append ? call.input(k) : call.absent();
  append && !s.values_in_keys ? call.input(v) : call.absent();
  call.input(where);
  s.sinks ? call.input(sequence.sinks) : call.absent();
  s.alibi ? call.input(sequence.slopes) : call.absent();
  call.output(DType::kFloat32, {1, end - begin, s.heads, s.value_dim}).state(state_shape(s)).caches(&cache.caches);
  call.integers("state", {0}).number("scale", 0.3).integers("window", {s.window}).number("softcap", s.softcap);
  if (s.bidirectional) call.integers("bidirectional", {1});
  if (s.values_in_keys) call.integers("value_dim", {s.value_dim});
  if (kernel != nullptr) MOTE_RETURN_IF_ERROR(call.check());
  const Status status = kernel == nullptr ? call.run(threads) : run_with(kernel, call, cache.caches, threads);
  if (status.ok() && out != nullptr) *out = std::move(call.result());
  return status;
}

inline Status attend(const Setting& s, const Sequence& sequence, Cache& cache, int64_t begin, int64_t end, int threads,
                     Owned* out, bool append = true) {
  return attend_with(nullptr, s, sequence, cache, begin, end, threads, out, append);
}

// Attention of query `t` in double.
inline std::vector<double> expected_row(const Setting& s, const Sequence& sequence, int64_t t, int64_t head) {
  const std::vector<double>&q = sequence.queries, &k = sequence.keys, &v = sequence.values;
  const int64_t tokens = sequence.q.tensor.size(2), kv = head / (s.heads / s.kv_heads);
  std::vector<double> scores, result(static_cast<size_t>(s.value_dim), 0.0);
  std::vector<int64_t> seen;
  for (int64_t p = 0; p < (s.bidirectional ? tokens : t + 1); ++p) {
    if (s.bidirectional && s.window != 0 && p >= t + s.window) continue;
    if (s.window != 0 && p <= t - s.window && p >= s.num_sinks) continue;
    double score = 0;
    for (int64_t d = 0; d < s.head_dim; ++d) {
      score += q[static_cast<size_t>((head * tokens + t) * s.head_dim + d)] *
               k[static_cast<size_t>((kv * tokens + p) * s.head_dim + d)];
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
      result[static_cast<size_t>(d)] +=
          std::exp(scores[i]) / total * v[static_cast<size_t>((kv * tokens + seen[i]) * s.value_dim + d)];
    }
  }
  return result;
}

inline std::vector<double> expected_rows(const Setting& s, const Sequence& sequence, int64_t begin, int64_t end) {
  std::vector<double> rows;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t head = 0; head < s.heads; ++head) {
      const std::vector<double> row = expected_row(s, sequence, t, head);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return rows;
}

inline int64_t capacity_for(const Setting& s, int64_t context, int64_t chunk) {
  return s.ring == 0 ? context : s.num_sinks + s.ring + chunk - 1;
}

}  // namespace mote::test
