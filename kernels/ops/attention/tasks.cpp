#include "kernels/ops/attention/tasks.h"

#include <algorithm>
#include <atomic>

#include "kernels/ops/attention/cache.h"
#include "kernels/ops/attention/workspace.h"
#include "kernels/support/contract.h"
#include "kernels/support/math.h"
#include "kernels/support/rows.h"

namespace mote {

namespace {

// The splits that some queries see, in order: those of the sinks, then those of the window.
struct SplitRange {
  int64_t sink_splits = 0;
  int64_t first = 0;
  int64_t count = 0;
  int64_t lowest = 0;  // the first and the last position that windows see
  int64_t highest = 0;

  SplitRange(const KvCache& cache, int64_t first_seen, int64_t last_seen)
      : lowest(std::max<int64_t>(0, first_seen)), highest(last_seen) {
    const int64_t splits = highest / kSplitPositions + 1;
    first = lowest / kSplitPositions;
    sink_splits = std::min(first, (cache.num_sinks + kSplitPositions - 1) / kSplitPositions);
    count = splits - first + sink_splits;
  }
  int64_t split(int64_t index) const { return index < sink_splits ? index : first + index - sink_splits; }
};

// Blocks of a split that hold something between the range's positions or among the sinks.
SplitBlocks find_blocks(const KvCache& cache, const SplitRange& range, int64_t split, int64_t stride) {
  SplitBlocks blocks;
  const auto add = [&](int64_t slot, int64_t first) {
    uint32_t held = held_slots(cache.positions + slot, first);
    if (stride > 1) held &= ends_of_strides(first, stride);
    if (held == 0) return;
    blocks.index[blocks.count] = slot / kKvBlockSlots;
    blocks.first[blocks.count] = first;
    blocks.held[blocks.count++] = held;
  };
  const int64_t end = std::min((split + 1) * kSplitPositions, range.highest + 1);
  for (int64_t first = split * kSplitPositions; first < end; first += kKvBlockSlots) {
    const bool in_window = first + kKvBlockSlots > range.lowest;
    const bool in_ring = cache.window != 0 && first + kKvBlockSlots > cache.num_sinks;
    if (first < cache.num_sinks || (cache.window == 0 && in_window)) add(first, first);
    if (in_ring && in_window) add(cache.slot_of(first + kKvBlockSlots - 1) / kKvBlockSlots * kKvBlockSlots, first);
  }
  return blocks;
}

// Leaves the blocks of which a query of the tile sees something, as far as its choice tells. Returns whether any is
// left.
bool keep_chosen(SplitBlocks& blocks, const QueryTile& tile) {
  int kept = 0;
  for (int b = 0; b < blocks.count; ++b) {
    bool is_chosen = false;
    for (int row = 0; row < tile.rows && !is_chosen; ++row) {
      const int64_t* end = tile.chosen[row] + tile.num_chosen;
      const int64_t* next = std::lower_bound(tile.chosen[row], end, blocks.first[b] * tile.stride);
      is_chosen = next != end && *next < (blocks.first[b] + kKvBlockSlots) * tile.stride;
    }
    if (!is_chosen) continue;
    blocks.index[kept] = blocks.index[b];
    blocks.first[kept] = blocks.first[b];
    blocks.held[kept++] = blocks.held[b];
  }
  blocks.follows = blocks.follows && kept == blocks.count;
  blocks.count = kept;
  return kept > 0;
}

// The tokens of a call that belong to one sequence, from `first_token` on, with that sequence's cache.
class Attention {
 public:
  Attention(const Call& call, const KernelContext& context, const SequenceStates& sequence, int64_t first_token)
      : call_(call),
        cache_(sequence.kv_caches[static_cast<size_t>(call.get_params<AttentionParams>().state)]),
        threads_(*context.threads),
        shape_(AttentionShape::of(call, sequence.tokens, cache_.type)),
        first_token_(first_token),
        params_(call.get_params<AttentionParams>()),
        positions_(*call.inputs[kPositions]),
        first_head_(head_of(cache_, 0)),
        memory_(context.scratch) {
    if (params_.value_dim > 0) {
      first_head_.values_in_keys = true;
      first_head_.value_head_dim = static_cast<int32_t>(shape_.value_head_dim);
    }
    rule_ = {params_.softcap, params_.window, cache_.num_sinks, params_.bidirectional, params_.is_chunked};
    for (int64_t t = 0; t < shape_.tokens; ++t) last_ = std::max(last_, position(t));
    shared_ = memory_.subspan(AttentionWorkspace::bytes(shape_) * static_cast<size_t>(threads_.num_threads()));
  }

  const AttentionShape& shape() const { return shape_; }

  void run() {
    if (shape_.units() == 0 || shape_.tokens == 0) return;
    const bool has_keys = optional_input(call_, kKey) != nullptr;
    const bool splits = shape_.splits_context(threads_.num_threads());
    // With one tile a head, a task appends what it reads, since no other reads it. But tasks of two splits may read one
    // block of a ring.
    const bool together = shape_.tiles() == 1 && (!splits || cache_.window == 0);
    if (has_keys) mark_positions();
    if (has_keys && !together) append_all();
    if (splits) {
      attend_splits(has_keys && together);
    } else {
      threads_.parallel_for(shape_.units(), 1, [&](int64_t begin, int64_t end, int thread) {
        AttentionWorkspace work = workspace(thread);
        for (int64_t unit = begin; unit < end; ++unit) attend_unit(unit, has_keys && together, work);
      });
    }
  }

  AttentionWorkspace workspace(int thread) const {
    return AttentionWorkspace(memory_.subspan(AttentionWorkspace::bytes(shape_) * static_cast<size_t>(thread)), shape_);
  }

  void mark_positions() const {
    for (int64_t t = 0; t < shape_.tokens; ++t) {
      if (is_kept(t)) cache_.positions[slot(t)] = position(t);
    }
  }

  void append_head(int64_t kv_head, const AttentionWorkspace& work) const {
    append(kv_head, 0, kMaxTensorElements, work);
  }

  // Attends a tile over all that it sees. appends: no other task reads this head's new keys, so they are appended here.
  void attend_unit(int64_t unit, bool appends, AttentionWorkspace& work) const {
    if (appends) append_head(unit, work);
    load_queries(unit, work);
    clear_sums(work.sums, work.tile.rows, shape_.width());
    const SplitRange range = range_of(work.tile);
    for (int64_t i = 0; i < range.count; ++i) {
      attend(unit, range, range.split(i), i > 0, work.tile, work.part);
      params_.kernel->fold(work.sums, work.part, work.tile.rows, shape_.width());
    }
    store_outputs(unit, work.sums);
  }

 private:
  int64_t end(int64_t token) const { return position_at(positions_, first_token_ + token) + 1; }
  // Of a token, or where the cache has a stride the number of the last key that it sees, which is its own if it is
  // kept.
  int64_t position(int64_t token) const { return end(token) / cache_.stride - 1; }
  bool is_kept(int64_t token) const { return end(token) % cache_.stride == 0; }
  int64_t slot(int64_t token) const { return cache_.slot_of(end(token) - 1); }
  // Row of q, k or v, whose last dimension is a row.
  int64_t row_of(int64_t head, int64_t token) const { return head * positions_.size(1) + first_token_ + token; }

  KvHead head(int64_t index) const {
    KvHead head = first_head_;
    head.keys_offset += index * kKvPageBlocks * head.key_block_bytes;
    head.values_offset += index * kKvPageBlocks * head.value_block_bytes;
    return head;
  }

  // Writes the tokens whose positions lie in [begin, end).
  void append(int64_t kv_head, int64_t begin, int64_t end, const AttentionWorkspace& work) const {
    const KvHead to = head(kv_head);
    const Tensor* values = optional_input(call_, kValue);
    for (int64_t t = 0; t < shape_.tokens; ++t) {
      const int64_t at = position(t);
      if (at < begin || at >= end || !is_kept(t)) continue;
      const float* key = read_row(*call_.inputs[kKey], row_of(kv_head, t), work.key);
      const float* value = values == nullptr ? nullptr : read_row(*values, row_of(kv_head, t), work.value);
      params_.kernel->append(to, slot(t), key, value, work.key, work.value);
    }
  }

  // Threads split the heads, not the tokens: several tokens may have one slot, and slots may share bytes.
  void append_all() const {
    const int64_t work_of_head = shape_.tokens * (shape_.head_dim + shape_.value_head_dim);
    threads_.parallel_for(shape_.kv_heads, row_grain(work_of_head), [&](int64_t begin, int64_t end, int thread) {
      const AttentionWorkspace work = workspace(thread);
      for (int64_t index = begin; index < end; ++index) append_head(index, work);
    });
  }

  void load_queries(int64_t unit, AttentionWorkspace& work) const {
    QueryTile& tile = work.tile;
    const Tensor& q = *call_.inputs[kQuery];
    const Tensor* slopes = optional_input(call_, kSlopes);
    const bool has_choice = optional_input(call_, kChosen) != nullptr || optional_input(call_, kBias) != nullptr;
    const int64_t kv_head = unit / shape_.tiles(), first = unit % shape_.tiles() * kQueryRows;
    tile.rows = static_cast<int>(std::min<int64_t>(kQueryRows, shape_.rows() - first));
    for (int64_t row = 0; row < tile.rows; ++row) {
      const int64_t token = (first + row) / shape_.group(),
                    index = kv_head * shape_.group() + (first + row) % shape_.group();
      copy_row(q, row_of(index, token), tile.queries + row * shape_.head_dim);
      tile.positions[row] = position(token);
      tile.slopes[row] = slopes == nullptr ? 0.0f : slopes->as<float>()[index];
      if (has_choice) load_choice(kv_head, index, token, static_cast<int>(row), work);
    }
    params_.kernel->prepare(head(kv_head), params_.scale, tile);
  }

  void load_choice(int64_t kv_head, int64_t index, int64_t token, int row, AttentionWorkspace& work) const {
    if (const Tensor* chosen = optional_input(call_, kChosen)) {
      const int64_t groups = chosen->size(2), count = chosen->size(3);
      const int64_t from = (first_token_ + token) * groups + kv_head / (shape_.kv_heads / groups);
      work.chosen[row] = chosen->as<int64_t>() + from * count;
      work.tile.chosen = work.chosen;
      work.tile.stride = cache_.stride;
      work.tile.num_chosen = count;
    }
    if (const Tensor* bias = optional_input(call_, kBias)) {
      work.biases[row] = bias->as<float>() + (first_token_ + token) * bias->stride(1) + index * bias->stride(2);
      work.tile.biases = work.biases;
      work.tile.num_biases = bias->size(3);
    }
  }

  SplitRange range_of(const QueryTile& tile) const {
    const auto [lowest, highest] = std::minmax_element(tile.positions, tile.positions + tile.rows);
    return SplitRange(cache_, rule_.first_seen(*lowest), std::min(last_, rule_.last_seen(*highest)));
  }

  void attend(int64_t unit, const SplitRange& range, int64_t split, bool follows, QueryTile& tile,
              const SoftmaxSums& result) const {
    const int64_t stride = params_.stride / cache_.stride;
    SplitBlocks blocks = find_blocks(cache_, range, split, stride);
    blocks.follows = follows && stride == 1;
    const bool is_empty = blocks.count == 0 || (tile.chosen != nullptr && !keep_chosen(blocks, tile));
    if (is_empty) return clear_sums(result, tile.rows, shape_.width());
    params_.kernel->attend(head(unit / shape_.tiles()), blocks, rule_, tile, result);
  }

  // The learned logit of a head joins the denominator only.
  static void join_sink(float sink, float& maximum, float& total, float& factor) {
    const float joined = sink > maximum ? sink : maximum;
    factor = math::exp(maximum - joined);
    total = total * factor + math::exp(sink - joined);
    maximum = joined;
  }

  // The logarithm of a softmax's divisor; -infinity where nothing was seen.
  static float log_of_sum(float maximum, float total) {
    if (total == 0) return -std::numeric_limits<float>::infinity();
    return static_cast<float>(static_cast<double>(maximum) + math::log(static_cast<double>(total)));
  }

  float sink_of(const Tensor& sinks, int64_t token, int64_t index) const {
    if (sinks.rank == 1) return sinks.as<float>()[index];
    return sinks.as<float>()[(first_token_ + token) * sinks.stride(1) + index * sinks.stride(2)];
  }

  void store_outputs(int64_t unit, const SoftmaxSums& sums) const {
    const Tensor* sinks = optional_input(call_, kSinks);
    const int64_t kv_head = unit / shape_.tiles(), first = unit % shape_.tiles() * kQueryRows;
    const int64_t rows = std::min<int64_t>(kQueryRows, shape_.rows() - first);
    const KvHead from = head(kv_head);
    const int64_t width = call_.outputs[0]->size(3);
    const bool is_whole = width == from.value_head_dim;  // else more was summed, to be turned back
    float* outputs = call_.outputs[0]->as<float>();
    float* logarithms = call_.outputs.size() > 1 ? call_.outputs[1]->as<float>() : nullptr;
    const int64_t group = shape_.group();
    int64_t token = first / group, member = first % group;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t index = kv_head * group + member;
      float maximum = sums.maxima[row], total = sums.totals[row], factor = 1.0f;
      if (sinks != nullptr) join_sink(sink_of(*sinks, token, index), maximum, total, factor);
      factor = total != 0 ? factor / total : 0.0f;
      const int64_t at = (first_token_ + token) * shape_.heads + index;
      float* sum = sums.sums + row * shape_.width();
      float* to = is_whole ? outputs + at * width : sum;
      params_.kernel->finish(from, sum, factor, to);
      if (!is_whole) std::copy_n(to, width, outputs + at * width);
      if (logarithms != nullptr) logarithms[at] = log_of_sum(maximum, total);
      if (++member == group) ++token, member = 0;
    }
  }

  // A task is a tile with one split. The thread that finishes the last split of a tile adds them up in order.
  void attend_splits(bool appends) const {
    Scratch scratch(shared_);
    const int64_t rows = std::min<int64_t>(kQueryRows, shape_.rows()), at_once = shape_.splits_at_once();
    int32_t* left = scratch.take<int32_t>(shape_.units());
    const SoftmaxSums parts = take_sums(scratch, shape_.units() * at_once * rows, shape_.width());
    const SoftmaxSums sums = take_sums(scratch, shape_.units() * rows, shape_.width());
    const auto nth = [&](const SoftmaxSums& all, int64_t index) {
      return SoftmaxSums{all.maxima + index * rows, all.totals + index * rows,
                         all.sums + index * rows * shape_.width()};
    };
    clear_sums(sums, shape_.units() * rows, shape_.width());
    const SplitRange range = whole_range();
    for (int64_t done = 0; done < range.count; done += at_once) {
      const int64_t count = std::min(at_once, range.count - done);
      std::fill_n(left, shape_.units(), static_cast<int32_t>(count));
      threads_.parallel_for(shape_.units() * count, split_grain(range), [&](int64_t begin, int64_t end, int thread) {
        AttentionWorkspace work = workspace(thread);
        for (int64_t task = begin, loaded = -1; task < end; ++task) {
          const int64_t unit = task / count, index = task % count, split = range.split(done + index);
          if (appends) append(unit, split * kSplitPositions, (split + 1) * kSplitPositions, work);
          if (loaded != unit) load_queries(unit, work);
          attend(unit, range, split, loaded == unit, work.tile, nth(parts, unit * at_once + index));
          loaded = unit;
          if (std::atomic_ref(left[unit]).fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
          for (int64_t i = 0; i < count; ++i) {
            params_.kernel->fold(nth(sums, unit), nth(parts, unit * at_once + i), work.tile.rows, shape_.width());
          }
          if (done + count == range.count) store_outputs(unit, nth(sums, unit));
        }
      });
    }
  }

  SplitRange whole_range() const {
    int64_t lowest = position(0);
    for (int64_t t = 1; t < shape_.tokens; ++t) lowest = std::min(lowest, position(t));
    return SplitRange(cache_, rule_.first_seen(lowest), last_);
  }

  // Tasks that are worth handing to a thread.
  int64_t split_grain(const SplitRange& range) const {
    const int64_t seen = std::min(kSplitPositions, range.highest - range.lowest + 1);
    return row_grain(std::min<int64_t>(kQueryRows, shape_.rows()) * seen * (shape_.head_dim + shape_.value_head_dim) /
                     8);
  }

  const Call& call_;
  KvCache& cache_;
  ThreadPool& threads_;
  const AttentionShape shape_;
  const int64_t first_token_;
  const AttentionParams params_;
  const Tensor& positions_;
  KvHead first_head_;
  std::span<std::byte> memory_, shared_;
  ScoreRule rule_;
  int64_t last_ = 0;  // position of the tokens
};

// All sequences of a call in the same parallel regions.
class TogetherAttention {
 public:
  TogetherAttention(const Call& call, const KernelContext& context) : call_(call), context_(context) {}

  void run() const {
    bool one_tile = true;
    int64_t num_units = 0, tokens_of_most = 0;
    const bool has_keys = optional_input(call_, kKey) != nullptr;
    for_each([&](const Attention& part, int64_t) {
      if (has_keys) part.mark_positions();
      one_tile = one_tile && part.shape().tiles() == 1;
      num_units += part.shape().units();
      tokens_of_most = std::max(tokens_of_most, part.shape().tokens);
    });
    if (has_keys && !one_tile) append_all(tokens_of_most);
    const bool appends = has_keys && one_tile;
    context_.threads->parallel_for(num_units, 1, [&](int64_t begin, int64_t end, int thread) {
      int64_t before = 0;
      for_each([&](const Attention& part, int64_t) {
        const int64_t first = std::max(begin, before) - before, last = std::min(end - before, part.shape().units());
        before += part.shape().units();
        if (first >= last) return;
        AttentionWorkspace work = part.workspace(thread);
        for (int64_t unit = first; unit < last; ++unit) part.attend_unit(unit, appends, work);
      });
    });
  }

  // Are there too few tiles in all to keep the threads busy?
  bool splits_context() const {
    int64_t num_units = 0;
    for (const SequenceStates& sequence : context_.sequences) {
      num_units += AttentionShape::of(call_, sequence.tokens, KvType::kFloat32).units();
    }
    return num_units < int64_t{4} * context_.threads->num_threads();
  }

  // body(the part of a sequence, its index)
  template <typename Body>
  void for_each(const Body& body) const {
    int64_t first_token = 0, index = 0;
    for (const SequenceStates& sequence : context_.sequences) {
      body(Attention(call_, context_, sequence, first_token), index++);
      first_token += sequence.tokens;
    }
  }

 private:
  void append_all(int64_t tokens) const {
    const AttentionShape shape = AttentionShape::of(call_, tokens, KvType::kFloat32);
    const auto num_sequences = static_cast<int64_t>(context_.sequences.size());
    const int64_t grain = row_grain(tokens * (shape.head_dim + shape.value_head_dim));
    context_.threads->parallel_for(num_sequences * shape.kv_heads, grain, [&](int64_t begin, int64_t end, int thread) {
      for_each([&](const Attention& part, int64_t index) {
        const AttentionWorkspace work = part.workspace(thread);
        const int64_t before = index * shape.kv_heads;
        for (int64_t task = std::max(begin, before); task < std::min(end, before + shape.kv_heads); ++task) {
          part.append_head(task - before, work);
        }
      });
    });
  }

  const Call& call_;
  const KernelContext& context_;
};

}  // namespace

KvHead head_of(const KvCache& cache, int64_t index) {
  KvHead head{cache.type, cache.head_dim, cache.value_head_dim, kv_key_block_bytes(cache.type, cache.head_dim),
              kv_value_block_bytes(cache.type, cache.value_head_dim)};
  head.pages = cache.pages;
  head.num_pages = cache.num_pages();
  head.keys_offset = cache.page_offset + index * kKvPageBlocks * head.key_block_bytes;
  head.values_offset =
      cache.page_offset + kKvPageBlocks * (cache.num_heads * head.key_block_bytes + index * head.value_block_bytes);
  return head;
}

namespace {

size_t scratch_bytes_of(const AttentionShape& shape, int num_threads) {
  size_t bytes = static_cast<size_t>(num_threads) * AttentionWorkspace::bytes(shape);
  // One sequence of a call may have so few tokens that its context is split where that of all tokens would not be.
  const int64_t most_units = int64_t{4} * num_threads - 1;
  const int64_t units = std::min(shape.units(), most_units), rows = std::min<int64_t>(kQueryRows, shape.rows());
  if (shape.tokens == 1 && shape.units() > most_units) return bytes;
  const int64_t parts = std::max(kPartialFloats / (shape.width() + 2), units * rows);
  return bytes + array_bytes<int32_t>(units) + sums_bytes(parts, shape.width()) +
         sums_bytes(units * rows, shape.width());
}

}  // namespace

size_t attention_scratch_bytes(const Call& call, int num_threads) {
  size_t most = 0;  // which type a session's cache has is not known here
  for (const KvType type : {KvType::kFloat32, KvType::kInt4}) {
    most = std::max(most, scratch_bytes_of(AttentionShape::of(call, call.inputs[kQuery]->size(2), type), num_threads));
  }
  return most;
}

void append_and_attend(const Call& call, const KernelContext& context) {
  const TogetherAttention attention(call, context);
  if (context.sequences.size() > 1 && !attention.splits_context()) {
    attention.run();
  } else {
    attention.for_each([](Attention part, int64_t) { part.run(); });
  }
}

}  // namespace mote
