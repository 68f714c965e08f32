// The parts of mote.attention, once for each instruction set.
#include "kernels/kernel.h"
#include "kernels/ops/attention/append.h"
#include "kernels/ops/attention/kernel.h"
#include "kernels/ops/attention/scores.h"
#include "kernels/ops/attention/values.h"
#include "kernels/ops/attention/values_in_keys.h"
#include "kernels/simd/hadamard.h"
#include "kernels/simd/math.h"

namespace mote {
inline namespace MOTE_ISA {

namespace {

constexpr float kInfinity = __builtin_inff();

// Of 16 levels a large element would leave its neighbours few, so int4 holds rotated rows (docs/ops.md).
bool is_turned(const KvHead& head, int64_t width) { return head.type == KvType::kInt4 && width > 0 && width % 16 == 0; }

const float* turned(const KvHead& head, const float* row, int64_t width, float* to) {
  if (!is_turned(head, width)) return row;
  rotate_row(row, width, to);
  return to;
}

void append(const KvHead& head, int64_t slot, const float* key, const float* value, float* turned_key,
            float* turned_value) {
  std::byte* keys = head.key_block(slot / kKvBlockSlots);
  std::byte* values = head.value_block(slot / kKvBlockSlots);
  const int64_t in_block = slot % kKvBlockSlots, width = padded_width(head.value_head_dim);
  if (head.type == KvType::kFloat32) {
    float* k = reinterpret_cast<float*>(keys) + in_block;
    float* v = reinterpret_cast<float*>(values) + in_block * width;
    put_floats(key, head.head_dim, [=](int64_t i, float x) { k[16 * i] = x; });
    if (!head.values_in_keys) put_floats(value, head.value_head_dim, [=](int64_t i, float x) { v[i] = x; });
  } else if (head.type == KvType::kFloat16) {
    uint16_t* k = reinterpret_cast<uint16_t*>(keys) + in_block;
    uint16_t* v = reinterpret_cast<uint16_t*>(values) + in_block * width;
    put_halves(key, head.head_dim, [=](int64_t i, uint16_t x) { k[16 * i] = x; });
    if (!head.values_in_keys) put_halves(value, head.value_head_dim, [=](int64_t i, uint16_t x) { v[i] = x; });
  } else {
    append_key_codes(head, keys, in_block, turned(head, key, head.head_dim, turned_key));
    if (head.values_in_keys) return;
    append_value_codes(head, values, in_block, turned(head, value, head.value_head_dim, turned_value));
  }
}

void quantize_query(const float* query, int64_t width, int16_t* codes, float* scales) {
  for (int64_t begin = 0; begin < width; begin += kKvGroup) {
    const int64_t count = width - begin < kKvGroup ? width - begin : kKvGroup;
    const F32x16 low = load_up_to(query + begin, count);
    const F32x16 high = load_up_to(query + begin + 16, count - 16);
    const float largest = max_lanes(max(magnitude(high), max(magnitude(low), splat(0.0f))));
    // NaN where an element is NaN or infinite, so that the scores become NaN.
    const float defect = sum_lanes((low + high) * splat(0.0f));
    scales[begin / kKvGroup] = largest / 32767.0f + defect;
    const F32x16 inverse = splat(largest > 1e-30f ? 32767.0f / largest : 0.0f);
    const F32x16 limit = splat(32767.0f), negative = splat(-32767.0f);
    store_i16(codes + begin, round_to_i32(min(max(low * inverse, negative), limit)));
    if (count > 16) store_i16(codes + begin + 16, round_to_i32(min(max(high * inverse, negative), limit)));
  }
}

void prepare(const KvHead& head, float scale, QueryTile& tile) {
  const int64_t width = head.head_dim, groups = (width + kKvGroup - 1) / kKvGroup, elements = tile.rows * width;
  for (int64_t i = 0; i < elements; ++i) tile.queries[i] *= scale;
  if (head.type == KvType::kFloat32 || head.type == KvType::kFloat16) return;
  for (int row = 0; row < tile.rows; ++row) {
    float* query = tile.queries + row * width;
    quantize_query(turned(head, query, width, query), width, tile.codes + row * padded_width(width),
                   tile.code_scales + row * groups);
  }
}

// Slots of the block from `first` on whose positions are among `count` ascending ones.
uint32_t chosen_slots(const int64_t* chosen, int64_t count, int64_t first, int64_t stride) {
  const int64_t begin = first * stride, behind = begin + kKvBlockSlots * stride;
  int64_t at = 0;
  for (int64_t end = count; at < end;) {
    const int64_t middle = at + (end - at) / 2;
    if (chosen[middle] < begin) {
      at = middle + 1;
    } else {
      end = middle;
    }
  }
  uint32_t slots = 0;
  for (; at < count && chosen[at] < behind; ++at) {
    if (chosen[at] < begin) continue;
    const int64_t end = chosen[at] - begin + 1;
    if (end % stride == 0) slots |= 1u << (end / stride - 1);
  }
  return slots;
}

// The first `count` slots of a block.
uint32_t slots_below(int64_t count) { return count <= 0 ? 0 : count >= kKvBlockSlots ? kAllLanes : (1u << count) - 1; }

// Which slots of a block the query at `position` sees.
uint32_t visible_slots(const ScoreRule& rule, int64_t position, int64_t first, uint32_t held) {
  const int64_t last = first + kKvBlockSlots - 1, last_seen = rule.last_seen(position);
  const uint32_t behind = slots_below((last_seen < last ? last_seen : last) - first + 1);
  if (rule.window == 0) return behind & held;
  const uint32_t before_window = slots_below(rule.first_seen(position) - first);
  return behind & (~before_window | slots_below(rule.num_sinks - first)) & held;
}

// Finds the blocks that all queries see whole, which are most; in the others, sets the scores of unseen slots to
// -infinity.
void find_visible(const SplitBlocks& blocks, const ScoreRule& rule, QueryTile& tile) {
  int64_t lowest = tile.positions[0], highest = lowest;
  for (int row = 1; row < tile.rows; ++row) {
    lowest = tile.positions[row] < lowest ? tile.positions[row] : lowest;
    highest = tile.positions[row] > highest ? tile.positions[row] : highest;
  }
  const int64_t first_seen = rule.first_seen(highest), last_seen = rule.last_seen(lowest);  // by all
  for (int b = 0; b < blocks.count; ++b) {
    const bool is_seen = blocks.first[b] >= first_seen && blocks.first[b] + kKvBlockSlots - 1 <= last_seen;
    tile.full[b] = blocks.held[b] == kAllLanes && is_seen && tile.chosen == nullptr;
    if (tile.full[b]) continue;
    for (int row = 0; row < tile.rows; ++row) {
      uint32_t visible = visible_slots(rule, tile.positions[row], blocks.first[b], blocks.held[b]);
      if (tile.chosen != nullptr)
        visible &= chosen_slots(tile.chosen[row], tile.num_chosen, blocks.first[b], tile.stride);
      tile.visible[row * kSplitBlocks + b] = visible;
      float* scores = tile.scores + row * kSplitLanes + 16 * b;
      store_f32(scores, select_lanes(visible, load_f32(scores), splat(-kInfinity)));
    }
  }
}

// Applies soft-cap and ALiBi to one query's scores.
void adjust_scores(const SplitBlocks& blocks, float softcap, float slope, int64_t position, float* scores) {
  constexpr float kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (int b = 0; b < blocks.count; ++b) {
    F32x16 score = load_f32(scores + 16 * b);
    if (softcap != 0) score = tanh(score / splat(softcap)) * splat(softcap);
    const F32x16 distance = splat(static_cast<float>(blocks.first[b] - position)) + load_f32(kIndex);
    store_f32(scores + 16 * b, slope == 0 ? score : fma(splat(slope), distance, score));
  }
}

// Adds the biases of the keys 0, 1 .. num_biases - 1 positions behind each query.
void add_biases(const SplitBlocks& blocks, const QueryTile& tile) {
  for (int row = 0; row < tile.rows; ++row) {
    for (int b = 0; b < blocks.count; ++b) {
      const int64_t distance = tile.positions[row] - blocks.first[b];  // of slot 0, the largest of the block
      if (distance < 0 || distance - kKvBlockSlots + 1 >= tile.num_biases) continue;
      float* scores = tile.scores + row * kSplitLanes + 16 * b;
      for (int64_t i = 0; i < kKvBlockSlots && i <= distance; ++i) {
        if (distance - i < tile.num_biases) scores[i] += tile.biases[row][distance - i];
      }
    }
  }
}

// e^x for x <= 0, relative error below 2e-7; below -87 the result is that of -87, and NaN stays NaN.
// Source: reduction as exp in kernels/simd/math.h; Taylor polynomial of degree 6.
MOTE_INLINE F32x16 exp_of_negative(F32x16 x) {
  const F32x16 shift = splat(12583039.0f);  // 1.5 * 2^23 + 127: the low bits of a sum with it are an exponent
  const F32x16 clamped = max(splat(-87.0f), x);
  const F32x16 shifted = fma(clamped, splat(1.44269504f), shift);
  const F32x16 n = shifted - shift;
  const F32x16 r = fnma(n, splat(-2.12194440e-4f), fnma(n, splat(0.693359375f), clamped));
  F32x16 p = fma(splat(1.3888889e-3f), r, splat(8.3333333e-3f));
  p = fma(p, r, splat(4.1666667e-2f));
  p = fma(p, r, splat(1.6666667e-1f));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  return p * bits_to_f32(shift_left<23>(bits_to_i32(shifted)));
}

// Turns a query's scores into weights: e^(score - maximum), 0 for slots that it does not see.
void weigh_row(int count, const QueryTile& tile, int row, const SoftmaxSums& result) {
  float* scores = tile.scores + row * kSplitLanes;
  F32x16 most = splat(-kInfinity);
  for (int b = 0; b < count; ++b) most = max(most, load_f32(scores + 16 * b));
  const float maximum = max_lanes(most);
  F32x16 total = splat(0.0f);
  uint32_t any = 0;
  for (int b = 0; b < count; ++b) {
    F32x16 weight = exp_of_negative(load_f32(scores + 16 * b) - splat(maximum));
    if (!tile.full[b]) {
      const uint32_t visible = tile.visible[row * kSplitBlocks + b];
      weight = select_lanes(visible, weight, splat(0.0f));
      any |= visible;
    } else {
      any = kAllLanes;
    }
    total = total + weight;
    store_f32(scores + 16 * b, weight);
  }
  result.maxima[row] = any == 0 ? -kInfinity : maximum;
  result.totals[row] = sum_lanes(total);
}

// Scales lie behind their codes, and columns that registers cannot hold all at once are read in several passes.
template <bool kCodes>
void touch_all(const KvHead& head, const SplitBlocks& blocks, int rows) {
  if (!kCodes && kTileSums / rows * 16 >= head.value_head_dim) return;
  for (int b = 0; b < blocks.count; ++b) touch(head.key_block(blocks.index[b]), head.key_block_bytes);
  if (head.values_in_keys) return;
  for (int b = 0; b < blocks.count; ++b) touch(head.value_block(blocks.index[b]), head.value_block_bytes);
}

template <typename Keys, typename Values, Reading kReading, bool kCodes>
void attend_typed(const KvHead& head, const SplitBlocks& blocks, const ScoreRule& rule, QueryTile& tile,
                  const SoftmaxSums& result) {
  const bool is_fetched = blocks.follows && fetches_next(kReading, tile.rows, Keys::kElementBytes);
  if (kReading == Reading::kInOrder && tile.rows <= kFewRows && !is_fetched) touch_all<kCodes>(head, blocks, tile.rows);
  score_all<Keys, kReading, kCodes>(head, blocks, tile);
  for (int row = 0; row < tile.rows; ++row) {
    if (rule.softcap == 0 && tile.slopes[row] == 0) continue;
    adjust_scores(blocks, rule.softcap, tile.slopes[row], tile.positions[row], tile.scores + row * kSplitLanes);
  }
  if (tile.biases != nullptr) add_biases(blocks, tile);
  find_visible(blocks, rule, tile);
  for (int row = 0; row < tile.rows; ++row) weigh_row(blocks.count, tile, row, result);
  if constexpr (kCodes) {
    add_code_values<Values, kReading>(head, blocks, tile, result.sums);
  } else if (head.values_in_keys) {
    add_values_in_keys<Keys>(head, blocks, tile, result.sums);
  } else {
    std::memset(result.sums, 0, static_cast<size_t>(tile.rows * padded_width(head.value_head_dim)) * sizeof(float));
    add_float_values<Values, kReading>(head, blocks, tile, result.sums);
  }
}

template <Reading kReading>
void attend(const KvHead& head, const SplitBlocks& blocks, const ScoreRule& rule, QueryTile& tile,
            const SoftmaxSums& result) {
  switch (head.type) {
    case KvType::kFloat32:
      return attend_typed<Float32Keys, Float32Values, kReading, false>(head, blocks, rule, tile, result);
    case KvType::kFloat16:
      return attend_typed<Float16Keys, Float16Values, kReading, false>(head, blocks, rule, tile, result);
    case KvType::kInt8: return attend_typed<Int8Keys, Int8Values, kReading, true>(head, blocks, rule, tile, result);
    case KvType::kInt4: return attend_typed<Int4Keys, Int4Values, kReading, true>(head, blocks, rule, tile, result);
  }
}

template <Reading kReading>
void score(const KvHead& head, const SplitBlocks& blocks, QueryTile& tile) {
  switch (head.type) {
    case KvType::kFloat32: return score_all<Float32Keys, kReading, false>(head, blocks, tile);
    case KvType::kFloat16: return score_all<Float16Keys, kReading, false>(head, blocks, tile);
    case KvType::kInt8: return score_all<Int8Keys, kReading, true>(head, blocks, tile);
    case KvType::kInt4: return score_all<Int4Keys, kReading, true>(head, blocks, tile);
  }
}

void fold(const SoftmaxSums& sums, const SoftmaxSums& next, int rows, int64_t width) {
  for (int row = 0; row < rows; ++row) {
    const float before = sums.maxima[row], added = next.maxima[row];
    if (added == -kInfinity && next.totals[row] == 0) continue;  // nothing was seen
    const float maximum = added > before ? added : before;
    float factors[16];
    store_f32(factors, exp_of_negative(select_lanes(1, splat(before), splat(added)) - splat(maximum)));
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

void finish(const KvHead& head, const float* sums, float factor, float* to) {
  const int64_t width = head.value_head_dim;
  for (int64_t d = 0; d < width; d += 16) {
    const F32x16 result = load_f32(sums + d) * splat(factor);
    if (width - d >= 16) {
      store_f32(to + d, result);
    } else {
      store_part(to + d, result, width - d);
    }
  }
  if (is_turned(head, head.values_in_keys ? head.head_dim : width)) rotate_row_back(to, width);
}

template <Reading kReading>
constexpr AttentionKernel kAttention = {append, prepare, attend<kReading>, fold, finish, score<kReading>};

}  // namespace

MOTE_REGISTER_KERNEL(.name = "attention_" MOTE_ISA_NAME, .role = AttentionKernel::kRole, .needs = kNeeds, .rank = kRank,
                     .functions = &kAttention<Reading::kStreams>);
#if (defined(__AVX2__) || defined(__aarch64__)) && !defined(MOTE_SMALL_KERNELS)
MOTE_REGISTER_KERNEL(.name = "attention_one_stream_" MOTE_ISA_NAME, .role = AttentionKernel::kRole,
                     .needs = kNeeds | CpuFeature::kOneStream, .rank = kRank + 1,
                     .functions = &kAttention<Reading::kInOrder>);
#endif

}  // namespace MOTE_ISA
}  // namespace mote
