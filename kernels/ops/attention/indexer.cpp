// mote.indexer: appends index keys to a cache, then names the positions whose keys have the highest scores.
#include <algorithm>
#include <limits>

#include "kernels/kernel.h"
#include "kernels/ops/attention/cache.h"
#include "kernels/ops/attention/tasks.h"
#include "kernels/support/contract.h"
#include "kernels/support/rows.h"
#include "kernels/support/scratch.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

enum IndexerInput : size_t { kIndexQuery = 0, kIndexKey, kIndexPositions, kIndexWeights };

constexpr Code kBadIndexer = Code::kInvalidProgram;
constexpr int64_t kMostChosen = int64_t{1} << 18;  // positions

struct IndexerParams {
  int64_t state = 0;
  int64_t topk = 0;    // blocks
  int64_t block = 1;   // positions, of which the last one's key is scored
  int64_t stride = 1;  // the same, where a block stands for its last position; then `block` is 1
  const AttentionKernel* kernel = nullptr;

  int64_t size() const { return block * stride; }
  int64_t width() const { return topk * block + block - 1; }
};

// A block of positions, by its number.
struct Candidate {
  float score;
  int64_t block;

  // Equal scores: the earlier one first.
  bool operator<(const Candidate& other) const {
    return score != other.score ? score > other.score : block < other.block;
  }
};

Status check_indexer_operands(const Call& call, const StateShape& shape) {
  const Tensor& q = *call.inputs[kIndexQuery];
  const int64_t tokens = q.size(2);
  MOTE_RETURN_IF_ERROR(expect_sizes(q, "q", {1, q.size(1), tokens, shape.head_dim}));
  MOTE_REQUIRE(q.size(1) >= 1 && q.size(1) % shape.num_heads == 0, kBadIndexer,
               "q has %lld heads: must be a multiple of the cache's %d", static_cast<long long>(q.size(1)),
               shape.num_heads);
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[kIndexKey], "k", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_sizes(*call.inputs[kIndexKey], "k", {1, shape.num_heads, tokens, shape.head_dim}));
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[kIndexPositions], "positions", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_sizes(*call.inputs[kIndexPositions], "positions", {1, tokens}));
  if (const Tensor* weights = optional_input(call, kIndexWeights)) {
    MOTE_RETURN_IF_ERROR(expect_dtype(*weights, "weights", {DType::kFloat32}));
    MOTE_RETURN_IF_ERROR(expect_sizes(*weights, "weights", {1, tokens, q.size(1)}));
  }
  return Status();
}

Status check_indexer(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 3, 4, 1));
  const Tensor& q = *call.inputs[kIndexQuery];
  MOTE_RETURN_IF_ERROR(expect_dtype(q, "q", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(q, "q", 4, 4));
  IndexerParams params;
  MOTE_ASSIGN(params.state, integer_in(call, "state", 0, std::numeric_limits<int32_t>::max()));
  MOTE_ASSIGN(params.block, integer_or(call, "block", 1, 1, 1 << 12));
  MOTE_ASSIGN(params.stride, integer_or(call, "stride", 1, 1, params.block == 1 ? 1 << 20 : 1));
  MOTE_ASSIGN(params.topk, integer_in(call, "topk", 1, kMostChosen / params.block));
  MOTE_REQUIRE(static_cast<size_t>(params.state) < call.state_shapes.size(), kBadIndexer,
               "attribute 'state' = %lld: must be below %zu", static_cast<long long>(params.state),
               call.state_shapes.size());
  const StateShape& shape = call.state_shapes[static_cast<size_t>(params.state)];
  MOTE_REQUIRE(
      shape.is_kv_cache && shape.window == 0 && shape.num_heads > 0 && shape.head_dim > 0 && shape.value_head_dim >= 0,
      kBadIndexer, "attribute 'state' = %lld is not a KV cache of all positions", static_cast<long long>(params.state));
  MOTE_REQUIRE(shape.stride == 1 || shape.stride == params.stride, kBadIndexer,
               "attribute 'stride' = %lld: must be %d, the stride of the cache", static_cast<long long>(params.stride),
               shape.stride);
  MOTE_RETURN_IF_ERROR(check_indexer_operands(call, shape));
  MOTE_ASSIGN(params.kernel, select_functions<AttentionKernel>({}, q.size(2)));
  const int64_t out[] = {1, q.size(2), shape.num_heads, params.width()};
  call.make_params<IndexerParams>() = params;
  return expect_output(call, 0, DType::kInt64, out);
}

// What one thread works with.
struct IndexerWorkspace {
  QueryTile tile;
  float* scores = nullptr;  // [kSplitLanes], of the splits' positions, over all heads
  Candidate* best = nullptr;
  float* row = nullptr;  // [head_dim]
  float* value = nullptr;

  // Candidates that are held before the worst are dropped.
  static int64_t most(const IndexerParams& params) { return 2 * params.topk + kSplitPositions; }

  static size_t bytes(int64_t dim, int64_t value_dim, const IndexerParams& params) {
    const int64_t groups = (dim + kKvGroup - 1) / kKvGroup;
    return array_bytes<float>(kQueryRows * dim) + array_bytes<int16_t>(kQueryRows * padded_width(dim)) +
           array_bytes<float>(kQueryRows * groups) + array_bytes<float>(kQueryRows * kSplitLanes) +
           array_bytes<float>(kSplitLanes) + array_bytes<Candidate>(most(params)) + array_bytes<float>(dim) +
           array_bytes<float>(value_dim) + array_bytes<std::byte>(kWideBytes);
  }

  IndexerWorkspace(std::span<std::byte> memory, int64_t dim, int64_t value_dim, const IndexerParams& params) {
    Scratch scratch(memory);
    const int64_t groups = (dim + kKvGroup - 1) / kKvGroup;
    tile.queries = scratch.take<float>(kQueryRows * dim);
    tile.codes = scratch.take<int16_t>(kQueryRows * padded_width(dim));
    tile.code_scales = scratch.take<float>(kQueryRows * groups);
    tile.scores = scratch.take<float>(kQueryRows * kSplitLanes);
    scores = scratch.take<float>(kSplitLanes);
    best = scratch.take<Candidate>(most(params));
    row = scratch.take<float>(dim);
    value = scratch.take<float>(value_dim);
    tile.wide = scratch.take<std::byte>(kWideBytes);
    std::fill_n(value, value_dim, 0.0f);
  }
};

size_t indexer_scratch_bytes(const Call& call, int num_threads) {
  const IndexerParams& params = call.get_params<IndexerParams>();
  const StateShape& shape = call.state_shapes[static_cast<size_t>(params.state)];
  return static_cast<size_t>(num_threads) * IndexerWorkspace::bytes(shape.head_dim, shape.value_head_dim, params);
}

// The tokens of a call that belong to one sequence, from `first_token` on.
class Indexer {
 public:
  Indexer(const Call& call, const KernelContext& context, const SequenceStates& sequence, int64_t first_token)
      : call_(call),
        context_(context),
        params_(call.get_params<IndexerParams>()),
        cache_(sequence.kv_caches[static_cast<size_t>(params_.state)]),
        tokens_(sequence.tokens),
        first_token_(first_token),
        group_(call.inputs[kIndexQuery]->size(1) / cache_.num_heads) {}

  void run() const {
    for (int64_t t = 0; t < tokens_; ++t) {
      const int64_t slot = cache_.slot_of(position(t));  // without a window, the number of the key too
      if (is_kept(t)) cache_.positions[slot] = slot;
    }
    ThreadPool& threads = *context_.threads;
    threads.parallel_for(cache_.num_heads, row_grain(tokens_ * cache_.head_dim),
                         [&](int64_t begin, int64_t end, int thread) {
                           const IndexerWorkspace work = workspace(thread);
                           for (int64_t head = begin; head < end; ++head) append(head, work);
                         });
    threads.parallel_for(tokens_ * cache_.num_heads, 1, [&](int64_t begin, int64_t end, int thread) {
      IndexerWorkspace work = workspace(thread);
      for (int64_t i = begin; i < end; ++i) choose(i / cache_.num_heads, i % cache_.num_heads, work);
    });
  }

 private:
  int64_t position(int64_t token) const { return position_at(*call_.inputs[kIndexPositions], first_token_ + token); }
  bool is_kept(int64_t token) const { return (position(token) + 1) % cache_.stride == 0; }
  int64_t row_of(int64_t head, int64_t token) const {
    return head * call_.inputs[kIndexPositions]->size(1) + first_token_ + token;
  }

  IndexerWorkspace workspace(int thread) const {
    const size_t bytes = IndexerWorkspace::bytes(cache_.head_dim, cache_.value_head_dim, params_);
    return IndexerWorkspace(context_.scratch.subspan(bytes * static_cast<size_t>(thread), bytes), cache_.head_dim,
                            cache_.value_head_dim, params_);
  }

  void append(int64_t head, const IndexerWorkspace& work) const {
    const KvHead to = head_of(cache_, head);
    for (int64_t t = 0; t < tokens_; ++t) {
      if (!is_kept(t)) continue;
      const float* key = read_row(*call_.inputs[kIndexKey], row_of(head, t), work.row);
      params_.kernel->append(to, cache_.slot_of(position(t)), key, work.value, work.row, work.value);
    }
  }

  // The blocks of a split of which slots are held.
  SplitBlocks find(int64_t split, int64_t end) const {
    SplitBlocks blocks;
    for (int64_t first = split; first < std::min(split + kSplitPositions, end); first += kKvBlockSlots) {
      const uint32_t held = held_slots(cache_.positions + first, first);
      if (held == 0) continue;
      blocks.index[blocks.count] = first / kKvBlockSlots;
      blocks.first[blocks.count] = first;
      blocks.held[blocks.count++] = held;
    }
    return blocks;
  }

  // Adds what heads [first, first + work.tile.rows) of a group give the positions of the blocks.
  void add_scores(int64_t token, int64_t first, const KvHead& keys, const SplitBlocks& blocks,
                  IndexerWorkspace& work) const {
    params_.kernel->score(keys, blocks, work.tile);
    const Tensor* weights = optional_input(call_, kIndexWeights);
    for (int row = 0; row < work.tile.rows; ++row) {
      float weight = 1.0f;
      if (weights != nullptr) {
        weight = weights->as<float>()[(first_token_ + token) * weights->stride(1) + (first + row) * weights->stride(2)];
      }
      const float* from = work.tile.scores + row * kSplitLanes;
      for (int i = 0; i < kKvBlockSlots * blocks.count; ++i) {
        work.scores[i] += weight * (from[i] > 0.0f ? from[i] : 0.0f);
      }
    }
  }

  void load_queries(int64_t token, int64_t first, int64_t rows, const KvHead& keys, IndexerWorkspace& work) const {
    work.tile.rows = static_cast<int>(rows);
    for (int64_t row = 0; row < rows; ++row) {
      copy_row(*call_.inputs[kIndexQuery], row_of(first + row, token), work.tile.queries + row * cache_.head_dim);
    }
    params_.kernel->prepare(keys, 1.0f, work.tile);
  }

  // Scores of the first `complete` blocks. Returns how many candidates are left: the best, in no order.
  int64_t find_best(int64_t token, int64_t head, int64_t complete, IndexerWorkspace& work) const {
    const KvHead keys = head_of(cache_, head);
    const int64_t size = params_.size() / cache_.stride, end = complete * size;  // in slots
    int64_t count = 0;
    for (int64_t split = 0; split < end; split += kSplitPositions) {
      const SplitBlocks blocks = find(split, end);
      if (blocks.count == 0) continue;
      std::fill_n(work.scores, kKvBlockSlots * blocks.count, 0.0f);
      for (int64_t done = 0; done < group_; done += kQueryRows) {
        const int64_t rows = std::min<int64_t>(kQueryRows, group_ - done), first = head * group_ + done;
        if (split == 0 || group_ > kQueryRows) load_queries(token, first, rows, keys, work);
        add_scores(token, first, keys, blocks, work);
      }
      for (int i = 0; i < kKvBlockSlots * blocks.count; ++i) {
        const int64_t p = blocks.first[i / kKvBlockSlots] + i % kKvBlockSlots;
        const bool is_held = (blocks.held[i / kKvBlockSlots] >> (i % kKvBlockSlots) & 1) != 0;
        if (p >= end || !is_held || (p + 1) % size != 0) continue;
        const float score = work.scores[i];
        work.best[count++] = {score == score ? score : std::numeric_limits<float>::infinity(), p / size};
      }
      if (count > 2 * params_.topk) {
        std::nth_element(work.best, work.best + params_.topk, work.best + count);
        count = params_.topk;
      }
    }
    if (count > params_.topk) std::nth_element(work.best, work.best + params_.topk, work.best + count);
    return std::min(count, params_.topk);
  }

  // Writes the positions of the chosen blocks and those behind the last complete one, which come last; -1 before them.
  // With a stride, the last positions of the chosen blocks only.
  void choose(int64_t token, int64_t head, IndexerWorkspace& work) const {
    const int64_t end = position(token) + 1, complete = end / params_.size(), width = params_.width();
    int64_t count = std::min(complete, params_.topk);
    if (complete > params_.topk) {
      count = find_best(token, head, complete, work);
    } else {
      for (int64_t i = 0; i < count; ++i) work.best[i] = {0.0f, i};
    }
    std::sort(work.best, work.best + count, [](const Candidate& a, const Candidate& b) { return a.block < b.block; });
    int64_t* to = call_.outputs[0]->as<int64_t>() + ((first_token_ + token) * cache_.num_heads + head) * width;
    const int64_t tail = params_.stride == 1 ? end - complete * params_.block : 0;
    to = std::fill_n(to, width - count * params_.block - tail, int64_t{-1});
    for (int64_t i = 0; i < count; ++i) {
      const int64_t block_end = (work.best[i].block + 1) * params_.size();
      for (int64_t p = block_end - params_.block; p < block_end; ++p) *to++ = p;
    }
    for (int64_t p = end - tail; p < end; ++p) *to++ = p;
  }

  const Call& call_;
  const KernelContext& context_;
  const IndexerParams params_;
  KvCache& cache_;
  const int64_t tokens_, first_token_;
  const int64_t group_;  // queries that read one head of keys
};

Status run_indexer(const Call& call, KernelContext& context) {
  const auto state = static_cast<size_t>(call.get_params<IndexerParams>().state);
  int64_t first = 0;
  for (const SequenceStates& sequence : context.sequences) {
    MOTE_REQUIRE(state < sequence.kv_caches.size(), Code::kInternal, "the session has no cache for state %zu", state);
    MOTE_RETURN_IF_ERROR(check_cache(sequence.kv_caches[state], call.state_shapes[state]));
    MOTE_RETURN_IF_ERROR(
        check_positions(sequence.kv_caches[state], *call.inputs[kIndexPositions], first, sequence.tokens));
    Indexer(call, context, sequence, first).run();
    first += sequence.tokens;
  }
  return Status();
}

OutputAxis indexer_axis(const SymbolicCall& call) { return tokens_at(call, {2, 2, 1, 1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.indexer", .check = check_indexer, .scratch_bytes = indexer_scratch_bytes,
                 .run = run_indexer, .token_axis = indexer_axis);

}  // namespace mote
