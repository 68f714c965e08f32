// Keys that tokens choose.
#include <algorithm>

#include "backends/vulkan/planner.h"

namespace mote::vulkan {
namespace {

constexpr int64_t kMostChosen = int64_t{1} << 18;      // positions
constexpr int64_t kMostScoreBytes = int64_t{1} << 26;  // of the tokens of a dispatch

}  // namespace

Status Planner::add_indexer() {
  MOTE_ASSIGN(const uint32_t index, cache_index());
  const GraphCache& cache = graph_.caches[index];
  const int64_t topk = node_->integers[1], block = node_->integers[2], kv_heads = cache.num_heads;
  if (block < 1 || block > kMostChosen || topk < 1 || topk > kMostChosen / block)
    return invalid("integers: must choose 1..%lld positions", static_cast<long long>(kMostChosen));
  MOTE_RETURN_IF_ERROR(integer_below(3, 2));
  const bool only_last = node_->integers[3] != 0;
  MOTE_ASSIGN(const View q, heads("q", node_->inputs[0]));
  MOTE_ASSIGN(const View positions, integers("positions", node_->inputs[2]));
  const int64_t tokens = positions.count(), num_heads = q.sizes[1];
  if (q.sizes[2] != tokens || q.sizes[3] != cache.head_dim || num_heads % kv_heads != 0)
    return invalid("q: does not fit the cache");
  MOTE_ASSIGN(const Bound weights, parameter("weights", node_->inputs[3], tokens * num_heads));
  const int64_t width = only_last ? topk : topk * block + block - 1;
  if (value_of(node_->outputs[0]).content != fb::Content::int64) return invalid("outputs[0]: must hold int64");
  MOTE_ASSIGN(const View y, whole_words("outputs[0]", node_->outputs[0], tokens * kv_heads * width));
  if (value_of(node_->inputs[2]).kind != fb::ValueKind::input) return invalid("positions: must be an input");
  plan_.positions.push_back(positions.value);
  const Bound keys{Bind::keys, index, 0}, scores{Bind::parts, 0, 0};
  MOTE_RETURN_IF_ERROR(add_append(node_->inputs[1], keys, kv_heads, cache.head_dim, positions));
  plan_.splits = splits_;
  const int64_t blocks = splits_ * kSplitPositions / block, of_token = 4 * kv_heads * std::max<int64_t>(blocks, 1);
  const int64_t most = std::min<int64_t>(kMostScoreBytes, device_.limits.maxStorageBufferRange);
  const int64_t at_once = std::clamp<int64_t>(most / of_token, 1, tokens);
  plan_.parts_bytes = std::max(plan_.parts_bytes, static_cast<uint64_t>(at_once * of_token));
  for (int64_t first = 0; first < tokens; first += at_once) {
    const int64_t count = std::min(at_once, tokens - first);
    MOTE_RETURN_IF_ERROR(
        push({.shader = Shader::index_scores,
              .constants = {word(cache.head_dim), word(block), weights.kind != Bind::none},
              .groups = {word(ceil_div(std::max<int64_t>(blocks, 1), kLanes)), word(count), word(kv_heads)},
              .bindings = {bound(q), keys, bound(positions), weights, scores},
              .writes = 0b10000,
              .push = {word(kv_heads), word(num_heads / kv_heads), word(q.offset), word(q.strides[1]),
                       word(q.strides[2]), word(blocks), word(topk), word(first)},
              .of_position = {2 * kv_heads * cache.head_dim / block, num_heads * cache.head_dim / block}}));
    MOTE_RETURN_IF_ERROR(push({.shader = Shader::index_choose,
                               .constants = {word(block), only_last},
                               .groups = {word(count), word(kv_heads), 1},
                               .bindings = {scores, bound(positions), bound(y)},
                               .writes = 0b100,
                               .push = {word(kv_heads), word(blocks), word(topk), word(first)},
                               .of_position = {4 * kv_heads / block, 0}}));
  }
  return {};
}

}  // namespace mote::vulkan
