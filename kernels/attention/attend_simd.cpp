// The parts of mote.attention, once for each instruction set.
#include "kernels/attention/append.h"
#include "kernels/attention/kernel.h"
#include "kernels/attention/scores.h"
#include "kernels/attention/values.h"
#include "kernels/kernel.h"
#include "kernels/simd/math.h"

namespace mote {
inline namespace MOTE_ISA {

namespace {

constexpr float kInfinity = __builtin_inff();

void append(const KvHead& head, int64_t slot, const float* key, const float* value) {
  std::byte* keys = head.keys + slot / kKvBlockSlots * head.key_block_bytes;
  std::byte* values = head.values + slot / kKvBlockSlots * head.value_block_bytes;
  const int64_t in_block = slot % kKvBlockSlots, width = padded_width(head.value_head_dim);
  if (head.type == KvType::kFloat32) {
    float* k = reinterpret_cast<float*>(keys) + in_block;
    float* v = reinterpret_cast<float*>(values) + in_block * width;
    put_floats(key, head.head_dim, [=](int64_t i, float x) { k[16 * i] = x; });
    put_floats(value, head.value_head_dim, [=](int64_t i, float x) { v[i] = x; });
  } else if (head.type == KvType::kFloat16) {
    uint16_t* k = reinterpret_cast<uint16_t*>(keys) + in_block;
    uint16_t* v = reinterpret_cast<uint16_t*>(values) + in_block * width;
    put_halves(key, head.head_dim, [=](int64_t i, uint16_t x) { k[16 * i] = x; });
    put_halves(value, head.value_head_dim, [=](int64_t i, uint16_t x) { v[i] = x; });
  } else {
    append_key_codes(head, keys, in_block, key);
    append_value_codes(head, values, in_block, value);
  }
}

// NaN where one of the 32 is NaN, so that the scores of such a query become NaN.
float largest_magnitude(const float* x, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float size = __builtin_fabsf(x[i]);
    largest = size > largest || size != size ? size : largest;
  }
  return largest;
}

void quantize_query(const float* query, int64_t width, int16_t* codes, float* scales) {
  for (int64_t begin = 0; begin < width; begin += kKvGroup) {
    const int64_t count = width - begin < kKvGroup ? width - begin : kKvGroup;
    const float largest = largest_magnitude(query + begin, count);
    scales[begin / kKvGroup] = largest / 32767.0f;
    const F32x16 inverse = splat(largest > 0 ? 32767.0f / largest : 0.0f);
    for (int64_t i = 0; i < count; i += 16) {
      const F32x16 x = load_part(query + begin + i, count - i < 16 ? count - i : 16) * inverse;
      store_i16(codes + begin + i, round_to_i32(min(max(x, splat(-32767.0f)), splat(32767.0f))));
    }
  }
}

void prepare(const KvHead& head, QueryTile& tile) {
  if (head.type == KvType::kFloat32 || head.type == KvType::kFloat16) return;
  const int64_t width = head.head_dim, groups = (width + kKvGroup - 1) / kKvGroup;
  for (int row = 0; row < tile.rows; ++row) {
    quantize_query(tile.queries + row * width, width, tile.codes + row * padded_width(width), tile.code_scales + row * groups);
  }
}

// Which slots of a block the query at `position` sees.
uint32_t visible_slots(const ScoreRule& rule, int64_t position, int64_t first, uint32_t held) {
  const int64_t last = first + kKvBlockSlots - 1;
  const bool in_window = rule.window == 0 || first > position - rule.window;
  if (last <= position && in_window) return held;
  if (first > position) return 0;
  uint32_t visible = 0;
  for (int i = 0; i < kKvBlockSlots; ++i) {
    const int64_t distance = first + i - position;
    const bool inside = rule.window == 0 || distance > -rule.window || first + i < rule.num_sinks;
    if (distance <= 0 && inside) visible |= 1u << i;
  }
  return visible & held;
}

// Scores of one block from products of queries and keys. `from_query`: position of the first slot less the query's.
MOTE_INLINE F32x16 finish_scores(F32x16 scores, const ScoreRule& rule, float slope, int64_t from_query) {
  scores = scores * splat(rule.scale);
  if (rule.softcap != 0) scores = tanh(scores / splat(rule.softcap)) * splat(rule.softcap);
  if (slope != 0) {
    constexpr float kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    scores = fma(splat(slope), splat(static_cast<float>(from_query)) + load_f32(kIndex), scores);
  }
  return scores;
}

// NaN stays NaN: exp says nothing about it.
MOTE_INLINE F32x16 exp_of_difference(F32x16 scores, F32x16 maximum) {
  const F32x16 x = scores - maximum;
  return select_less(x, splat(1.0f), exp(x), x);
}

// Products in tile.scores become weights.
void weigh_row(const SplitBlocks& blocks, const ScoreRule& rule, QueryTile& tile, int row, const SoftmaxSums& result) {
  float* scores = tile.scores + row * kSplitLanes;
  uint32_t* visible = tile.visible + row * kSplitBlocks;
  uint32_t any = 0;
  F32x16 most = splat(-kInfinity);
  for (int b = 0; b < blocks.count; ++b) {
    visible[b] = visible_slots(rule, tile.positions[row], blocks.first[b], blocks.held[b]);
    any |= visible[b];
    F32x16 score = finish_scores(load_f32(scores + 16 * b), rule, tile.slopes[row], blocks.first[b] - tile.positions[row]);
    if (visible[b] != kAllLanes) score = select_lanes(visible[b], score, splat(-kInfinity));
    most = max(score, most);
    store_f32(scores + 16 * b, score);
  }
  const float maximum = max_lanes(most);
  F32x16 total = splat(0.0f);
  for (int b = 0; b < blocks.count; ++b) {
    F32x16 weight = exp_of_difference(load_f32(scores + 16 * b), splat(maximum));
    if (visible[b] != kAllLanes) weight = select_lanes(visible[b], weight, splat(0.0f));
    total = total + weight;
    store_f32(scores + 16 * b, weight);
  }
  result.maxima[row] = any == 0 ? -kInfinity : maximum;
  result.totals[row] = sum_lanes(total);
}

template <typename Keys, typename Values, bool kCodes>
void attend_typed(const KvHead& head, const SplitBlocks& blocks, const ScoreRule& rule, QueryTile& tile,
                  const SoftmaxSums& result) {
  score_all<Keys, kCodes>(head, blocks, tile);
  for (int row = 0; row < tile.rows; ++row) weigh_row(blocks, rule, tile, row, result);
  if constexpr (kCodes) {
    add_code_values<Values>(head, blocks, tile, result.sums);
  } else {
    std::memset(result.sums, 0, static_cast<size_t>(tile.rows * padded_width(head.value_head_dim)) * sizeof(float));
    add_float_values<Values>(head, blocks, tile, result.sums);
  }
}

void attend(const KvHead& head, const SplitBlocks& blocks, const ScoreRule& rule, QueryTile& tile, const SoftmaxSums& result) {
  switch (head.type) {
    case KvType::kFloat32: return attend_typed<Float32Keys, Float32Values, false>(head, blocks, rule, tile, result);
    case KvType::kFloat16: return attend_typed<Float16Keys, Float16Values, false>(head, blocks, rule, tile, result);
    case KvType::kInt8: return attend_typed<Int8Keys, Int8Values, true>(head, blocks, rule, tile, result);
    case KvType::kInt4: return attend_typed<Int4Keys, Int4Values, true>(head, blocks, rule, tile, result);
  }
}

void fold(const SoftmaxSums& sums, const SoftmaxSums& next, int rows, int64_t width) {
  for (int row = 0; row < rows; ++row) {
    const float before = sums.maxima[row], added = next.maxima[row];
    if (added == -kInfinity && next.totals[row] == 0) continue;  // nothing was seen
    const float maximum = added > before ? added : before;
    float factors[16];
    store_f32(factors, exp_of_difference(select_lanes(1, splat(before), splat(added)), splat(maximum)));
    const float keep = factors[0], take = factors[1];
    float both[16];
    store_f32(both, fma(splat(next.totals[row]), splat(take), splat(sums.totals[row]) * splat(keep)));
    sums.totals[row] = both[0];
    sums.maxima[row] = maximum;
    for (int64_t d = row * width; d < (row + 1) * width; d += 16) {
      store_f32(sums.sums + d, fma(load_f32(next.sums + d), splat(take), load_f32(sums.sums + d) * splat(keep)));
    }
  }
}

void finish(const float* sums, float factor, int64_t width, float* to) {
  for (int64_t d = 0; d < width; d += 16) {
    const F32x16 result = load_f32(sums + d) * splat(factor);
    if (width - d >= 16) {
      store_f32(to + d, result);
    } else {
      store_part(to + d, result, width - d);
    }
  }
}

constexpr AttentionKernel kAttention = {append, prepare, attend, fold, finish};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "attention_" MOTE_ISA_NAME, .role = AttentionKernel::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kAttention);

}  // namespace MOTE_ISA
}  // namespace mote
