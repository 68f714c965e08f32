#include "kernels/attention/attend.h"

#include <algorithm>
#include <limits>

#include "kernels/attention/cache.h"
#include "kernels/math.h"
#include "kernels/simd.h"

namespace mote {

namespace {

// The rows of one block of positions; nullptr where the cache does not hold a position.
struct KeyBlock {
  int64_t first = 0;
  const float* keys[kKeyBlock];
  const float* values[kKeyBlock];
};

void read_block(const KvCache& cache, int64_t head, int64_t first, const QueryBlock& queries, KeyBlock& block) {
  const int64_t key_bytes = kv_row_bytes(cache.type, cache.head_dim);
  const int64_t value_bytes = kv_row_bytes(cache.type, cache.value_head_dim);
  block.first = first;
  for (int64_t i = 0; i < kKeyBlock; ++i) {
    block.keys[i] = nullptr;
    const int64_t slot = cache.slot_of(first + i);
    if (slot >= cache.capacity || cache.positions[slot] != first + i) continue;
    const int64_t row = slot * cache.num_heads + head;
    block.keys[i] = read_kv_row(cache.type, static_cast<const std::byte*>(cache.keys) + row * key_bytes, cache.head_dim,
                                queries.keys + i * cache.head_dim);
    block.values[i] = read_kv_row(cache.type, static_cast<const std::byte*>(cache.values) + row * value_bytes,
                                  cache.value_head_dim, queries.values + i * cache.value_head_dim);
  }
}

// What one query sees of a block, in position order.
struct Visible {
  int64_t count = 0;
  const float* keys[kKeyBlock];
  const float* values[kKeyBlock];
  float distances[kKeyBlock];  // key position - query position
  float weights[kKeyBlock];
};

void select_visible(const KeyBlock& block, int64_t position, int64_t window, int64_t num_sinks, Visible& visible) {
  visible.count = 0;
  for (int64_t i = 0; i < kKeyBlock; ++i) {
    const int64_t distance = block.first + i - position;
    const bool outside = window != 0 && distance <= -window && block.first + i >= num_sinks;
    if (block.keys[i] == nullptr || distance > 0 || outside) continue;
    visible.keys[visible.count] = block.keys[i];
    visible.values[visible.count] = block.values[i];
    visible.distances[visible.count++] = static_cast<float>(distance);
  }
}

// Scores into visible.weights; returns the largest of them and `maximum`.
float score(const float* query, int64_t head_dim, const AttentionParams& params, float slope, float maximum,
            Visible& visible) {
  float* scores = visible.weights;
  int64_t i = 0;
  for (; i + 2 <= visible.count; i += 2) dot_rows<2>(query, visible.keys + i, head_dim, scores + i);
  if (i < visible.count) scores[i] = dot(query, visible.keys[i], head_dim);
  for (i = 0; i < visible.count; ++i) {
    scores[i] *= params.scale;
    if (params.softcap != 0) scores[i] = math::tanh(scores[i] / params.softcap) * params.softcap;
    if (slope != 0) scores[i] += slope * visible.distances[i];
    maximum = scores[i] > maximum ? scores[i] : maximum;
  }
  return maximum;
}

// sums = sums * correction + weighted values, in position order for each element.
void add_values(const Visible& visible, int64_t width, float correction, float* sums) {
  int64_t d = 0;
  for (; d + kLanes <= width; d += kLanes) {
    Float4 part[4];
    for (int j = 0; j < 4; ++j) part[j] = load<Float4>(sums + d + 4 * j) * broadcast(correction);
    for (int64_t i = 0; i < visible.count; ++i) {
      const Float4 weight = broadcast(visible.weights[i]);
      for (int j = 0; j < 4; ++j) part[j] += weight * load<Float4>(visible.values[i] + d + 4 * j);
    }
    for (int j = 0; j < 4; ++j) store(sums + d + 4 * j, part[j]);
  }
  for (; d < width; ++d) {
    float sum = sums[d] * correction;
    for (int64_t i = 0; i < visible.count; ++i) sum += visible.weights[i] * visible.values[i][d];
    sums[d] = sum;
  }
}

void update_row(const KvCache& cache, const AttentionParams& params, const KeyBlock& keys, QueryBlock& block, int64_t row) {
  Visible visible;
  select_visible(keys, block.positions[row], params.window, cache.num_sinks, visible);
  if (visible.count == 0) return;
  const float before = block.maxima[row];
  const float maximum = score(block.queries + row * cache.head_dim, cache.head_dim, params, block.slopes[row], before, visible);
  for (int64_t i = 0; i < visible.count; ++i) visible.weights[i] = math::exp(visible.weights[i] - maximum);
  const float correction = math::exp(before - maximum);
  float total = block.totals[row] * correction;
  for (int64_t i = 0; i < visible.count; ++i) total += visible.weights[i];
  block.totals[row] = total;
  block.maxima[row] = maximum;
  add_values(visible, cache.value_head_dim, correction, block.sums + row * cache.value_head_dim);
}

}  // namespace

size_t QueryBlock::bytes(int64_t head_dim, int64_t value_head_dim) {
  return array_bytes<float>((kQueryRows + kKeyBlock) * head_dim) + array_bytes<float>((kQueryRows + kKeyBlock) * value_head_dim) +
         3 * array_bytes<float>(kQueryRows) + array_bytes<int64_t>(kQueryRows);
}

void QueryBlock::place(Scratch& scratch, int64_t head_dim, int64_t value_head_dim) {
  queries = scratch.take<float>((kQueryRows + kKeyBlock) * head_dim);
  keys = queries + kQueryRows * head_dim;
  sums = scratch.take<float>((kQueryRows + kKeyBlock) * value_head_dim);
  values = sums + kQueryRows * value_head_dim;
  maxima = scratch.take<float>(kQueryRows);
  totals = scratch.take<float>(kQueryRows);
  slopes = scratch.take<float>(kQueryRows);
  positions = scratch.take<int64_t>(kQueryRows);
}

void attend(const KvCache& cache, int64_t head, const AttentionParams& params, QueryBlock& block) {
  std::fill(block.sums, block.sums + block.rows * cache.value_head_dim, 0.0f);
  std::fill(block.maxima, block.maxima + block.rows, -std::numeric_limits<float>::infinity());
  std::fill(block.totals, block.totals + block.rows, 0.0f);
  const auto [lowest, highest] = std::minmax_element(block.positions, block.positions + block.rows);
  const int64_t window_begin = params.window == 0 ? 0 : std::max<int64_t>(0, *lowest - params.window + 1);
  KeyBlock keys;
  for (int64_t first = 0; first <= *highest; first += kKeyBlock) {
    if (first >= cache.num_sinks) first = std::max(first, window_begin / kKeyBlock * kKeyBlock);
    if (first > *highest) break;
    read_block(cache, head, first, block, keys);
    for (int64_t row = 0; row < block.rows; ++row) update_row(cache, params, keys, block, row);
  }
}

}  // namespace mote
