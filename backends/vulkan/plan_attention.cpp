// Attention over the caches, and what turns queries and keys.
#include <algorithm>
#include <array>

#include "backends/vulkan/planner.h"

namespace mote::vulkan {
namespace {

constexpr int64_t kQueryHeads = 16,  // of a workgroup
    kMostTileRows = 16, kMostOutputs = 2048, kLayouts = 3;
constexpr size_t kTurnedBinding = 14;  // attend.comp

int64_t shared_bytes(int64_t num_heads, int64_t width) { return 4 * num_heads * (width + kLanes + 8); }
int64_t shared_bytes_of_tile(int64_t rows, int64_t width) { return 4 * rows * (width + kLanes + 14); }

int64_t heads_of_a_workgroup(int64_t together, int64_t width, int64_t value_width, int64_t limit) {
  int64_t heads = std::min(together, kQueryHeads);
  while (heads > 1 && (shared_bytes(heads, width) > limit || heads * value_width > kMostOutputs)) --heads;
  return heads;
}

// Queries of attend_tile.comp: of several tokens where that many heads do not fill it, but of no more than there are.
int64_t rows_of_tile(int64_t width, int64_t value_width, int64_t queries, int64_t limit) {
  int64_t rows = kMostTileRows;
  while (rows > 4 &&
         (shared_bytes_of_tile(rows, width) > limit || rows * value_width > kMostOutputs || rows / 2 >= queries))
    rows /= 2;
  return rows;
}

// What heads.comp is told of its views. query_heads: 0: there are no queries
std::vector<uint32_t> words_of_heads(const GraphCache& cache, int64_t tokens, int64_t query_heads,
                                     const std::array<View, 3>& heads, const std::array<View, 2>& tables) {
  const bool has_rope = !tables[0].sizes.empty();
  std::vector<uint32_t> words{
      word(query_heads),    word(cache.num_heads),      word(tokens),
      word(cache.head_dim), word(cache.value_head_dim), has_rope ? word(tables[0].sizes[2]) : 0};
  for (const View& view : heads) {
    for (const int64_t each : {view.offset, view.strides[1], view.strides[2]}) words.push_back(word(each));
  }
  for (const View& view : tables) {
    words.push_back(word(view.offset));
    words.push_back(has_rope ? word(view.strides[1]) : 0);
  }
  return words;
}

}  // namespace

Result<View> Planner::heads(const char* name, const GraphView& from) const {
  MOTE_ASSIGN(View made, floats(name, from));
  if (made.sizes.size() != 4 || made.sizes[0] != 1 || (made.strides[3] != 1 && made.sizes[3] != 1)) {
    return invalid("%s: must be [1, heads, tokens, width] with neighbours in the last", name);
  }
  return made;
}

Status Planner::add_rope() {
  MOTE_RETURN_IF_ERROR(integer_below(0, kLayouts));
  MOTE_ASSIGN(const View x, heads("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const View cosines, table_of(1, x.sizes[2], x.sizes[3]));
  MOTE_ASSIGN(const View sines, table_of(2, x.sizes[2], x.sizes[3]));
  const int64_t turned = cosines.sizes[2];
  if (sines.sizes[2] != turned) return invalid("sin: must have the sizes of cos");
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count()));
  return push({.shader = Shader::rope,
               .constants = {word(node_->integers[0])},
               .groups = spread(ceil_div(x.count(), kLanes)),
               .bindings = {bound(x), bound(cosines), bound(sines), bound(y)},
               .writes = 0b1000,
               .push = {word(x.sizes[1]), word(x.sizes[2]), word(x.sizes[3]), word(turned), word(x.offset),
                        word(x.strides[1]), word(x.strides[2]), word(cosines.offset), word(cosines.strides[1]),
                        word(sines.offset), word(sines.strides[1])}});
}

Status Planner::add_append(const GraphView& from, const Bound& cache, int64_t num_heads, int64_t width,
                           const View& positions) {
  MOTE_ASSIGN(const View x, heads("k, v", from));
  if (x.sizes[1] != num_heads || x.sizes[2] != positions.count() || x.sizes[3] != width) {
    return invalid("k, v: must be [1, %lld, %lld, %lld]", static_cast<long long>(num_heads),
                   static_cast<long long>(positions.count()), static_cast<long long>(width));
  }
  return push({.shader = Shader::append,
               .constants = {},
               .groups = spread(ceil_div(x.count() / 2, kLanes)),
               .bindings = {bound(x), bound(positions), cache},
               .writes = 0b100,
               .push = {word(num_heads), word(x.sizes[2]), word(width), word(x.offset), word(x.strides[1]),
                        word(x.strides[2])}});
}

Result<uint32_t> Planner::cache_index() const {
  const auto cache =
      std::ranges::find_if(graph_.caches, [&](const GraphCache& each) { return each.state == node_->integers[0]; });
  if (cache == graph_.caches.end())
    return invalid("state %lld: has no cache", static_cast<long long>(node_->integers[0]));
  return static_cast<uint32_t>(cache - graph_.caches.begin());
}

Status Planner::add_heads() {
  MOTE_ASSIGN(const uint32_t index, cache_index());
  MOTE_RETURN_IF_ERROR(integer_below(1, kLayouts + 1));
  const GraphCache& cache = graph_.caches[index];
  const bool has_queries = node_->inputs[0].value >= 0, has_rope = node_->integers[1] < kLayouts;
  if (node_->outputs.size() != has_queries) return invalid("outputs: must be one where there are queries");
  MOTE_ASSIGN(const View positions, integers("positions", node_->inputs[3]));
  const int64_t tokens = positions.count(), width = cache.head_dim, values = std::max(cache.value_head_dim, 2);
  const auto checked = [&](const char* name, size_t input, int64_t num_heads, int64_t columns) -> Result<View> {
    MOTE_ASSIGN(View view, heads(name, node_->inputs[input]));
    const bool fits = view.sizes[1] == num_heads || num_heads == 0;
    if (!fits || view.sizes[2] != tokens || view.sizes[3] != columns)
      return invalid("%s: does not fit the cache", name);
    return view;
  };
  MOTE_ASSIGN(const View k, checked("k", 1, cache.num_heads, width));
  MOTE_ASSIGN(const View v, checked("v", 2, cache.num_heads, values));
  MOTE_ASSIGN(const Bound q_weight, parameter("norm weight of q", node_->inputs[4], width));
  MOTE_ASSIGN(const Bound k_weight, parameter("norm weight of k", node_->inputs[5], width));
  View q = k, cosines, sines;
  Bound queries{}, y{}, cos{}, sin{};
  if (has_queries) {
    MOTE_ASSIGN(q, checked("q", 0, 0, width));
    MOTE_ASSIGN(const View turned, whole("outputs[0]", node_->outputs[0], q.count()));
    queries = bound(q);
    y = bound(turned);
  }
  if (has_rope) {
    MOTE_ASSIGN(cosines, table_of(6, tokens, width));
    MOTE_ASSIGN(sines, table_of(7, tokens, width));
    if (sines.sizes[2] != cosines.sizes[2]) return invalid("sin: must have the sizes of cos");
    cos = bound(cosines);
    sin = bound(sines);
  }
  if (value_of(node_->inputs[3]).kind != fb::ValueKind::input) return invalid("positions: must be an input");
  plan_.positions.push_back(positions.value);
  const int64_t query_heads = has_queries ? q.sizes[1] : 0;
  std::vector<uint32_t> words = words_of_heads(cache, tokens, query_heads, {q, k, v}, {cosines, sines});
  for (const float number : node_->numbers) words.push_back(word(number));
  const int64_t num_heads = 2 * cache.num_heads + query_heads;
  return push({.shader = Shader::heads,
               .constants = {lanes(), lanes(), word(node_->integers[1]),
                             word(std::max(cache.head_dim, cache.value_head_dim)), node_->integers[2] != 0,
                             q_weight.kind != Bind::none, node_->integers[3] != 0, k_weight.kind != Bind::none},
               .groups = spread(num_heads * tokens),
               .bindings = {queries.kind == Bind::none ? bound(k) : queries,
                            bound(k),
                            bound(v),
                            bound(positions),
                            q_weight,
                            k_weight,
                            cos,
                            sin,
                            {Bind::keys, index, 0},
                            {Bind::values, index, 0},
                            y},
               .writes = 0b11100000000,
               .push = std::move(words),
               .cost = {4 * num_heads * tokens * width * 2, 0}});
}

Status Planner::add_latent_heads() {
  MOTE_ASSIGN(const uint32_t index, cache_index());
  MOTE_RETURN_IF_ERROR(integer_below(1, kLayouts));
  const GraphCache& cache = graph_.caches[index];
  MOTE_ASSIGN(const View positions, integers("positions", node_->inputs[4]));
  const int64_t tokens = positions.count();
  std::array<View, 4> parts;  // in the space of the latent and turned, of queries and of keys
  for (size_t i = 0; i < parts.size(); ++i) {
    MOTE_ASSIGN(parts[i], heads("q, k", node_->inputs[i]));
    if (parts[i].sizes[2] != tokens) return invalid("q, k: must be of %lld tokens", static_cast<long long>(tokens));
  }
  const auto& [own, q, latent, k] = parts;
  const int64_t num_heads = own.sizes[1], width = latent.sizes[3], rest = k.sizes[3];
  const bool fits = cache.num_heads == 1 && latent.sizes[1] == 1 && k.sizes[1] == 1 && q.sizes[1] == num_heads &&
                    own.sizes[3] == width && q.sizes[3] == rest && rest % 2 == 0 && width + rest == cache.head_dim;
  if (!fits) return invalid("q, k: do not fit the cache");
  MOTE_ASSIGN(const Bound weight, parameter("norm weight", node_->inputs[5], width));
  MOTE_ASSIGN(const View cosines, table_of(6, tokens, rest));
  MOTE_ASSIGN(const View sines, table_of(7, tokens, rest));
  if (sines.sizes[2] != cosines.sizes[2]) return invalid("sin: must have the sizes of cos");
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], num_heads * tokens * cache.head_dim));
  if (value_of(node_->inputs[4]).kind != fb::ValueKind::input) return invalid("positions: must be an input");
  plan_.positions.push_back(positions.value);
  std::vector<uint32_t> words{word(num_heads), word(tokens), word(width), word(rest), word(cosines.sizes[2])};
  for (const View* each : {&own, &q}) {
    for (const int64_t number : {each->offset, each->strides[1], each->strides[2]}) words.push_back(word(number));
  }
  for (const View* each : {&latent, &k}) {
    for (const int64_t number : {each->offset, each->strides[2]}) words.push_back(word(number));
  }
  for (const View* each : {&cosines, &sines}) {
    for (const int64_t number : {each->offset, each->strides[1]}) words.push_back(word(number));
  }
  for (const float number : node_->numbers) words.push_back(word(number));
  return push({.shader = Shader::latent_heads,
               .constants = {lanes(), lanes(), word(node_->integers[1]), word(cache.head_dim), node_->integers[2] != 0,
                             weight.kind != Bind::none, node_->integers[3] != 0, node_->integers[4] != 0},
               .groups = spread((num_heads + 1) * tokens),
               .bindings = {bound(own),
                            bound(q),
                            bound(latent),
                            bound(k),
                            bound(positions),
                            weight,
                            bound(cosines),
                            bound(sines),
                            {Bind::keys, index, 0},
                            bound(y)},
               .writes = 0b1100000000,
               .push = std::move(words),
               .cost = {4 * (num_heads + 1) * tokens * cache.head_dim * 2, 0}});
}

Result<View> Planner::table_of(size_t input, int64_t tokens, int64_t width) const {
  if (node_->inputs[input].value < 0) return invalid("inputs[%zu]: is absent", input);
  MOTE_ASSIGN(View table, floats("cos, sin", node_->inputs[input]));
  const bool fits = table.sizes.size() == 3 && table.sizes[0] == 1 && table.sizes[1] == tokens &&
                    table.strides[2] == 1 && table.sizes[2] % 2 == 0 && table.sizes[2] <= width;
  if (!fits) return invalid("cos, sin: must be [1, %lld, columns]", static_cast<long long>(tokens));
  return table;
}

// [1, tokens, groups of heads, positions] and [1, tokens, heads, distances], in order.
Result<Planner::Sight> Planner::sight_of(int64_t tokens, int64_t num_heads) const {
  Sight sight;
  if (node_->inputs[6].value >= 0) {
    MOTE_ASSIGN(const View chosen, integers("chosen", node_->inputs[6]));
    const bool fits = chosen.sizes.size() == 4 && chosen.sizes[1] == tokens && num_heads % chosen.sizes[2] == 0;
    if (!fits || chosen.sizes[0] != 1) return invalid("chosen: must be [1, T, groups, positions]");
    sight.chosen = bound(chosen);
    sight.groups = chosen.sizes[2];
    sight.num_chosen = chosen.sizes[3];
  }
  if (node_->inputs[7].value >= 0) {
    MOTE_ASSIGN(const View biases, whole("biases", node_->inputs[7], 0));
    const bool fits = biases.sizes.size() == 4 && biases.sizes[1] == tokens && biases.sizes[2] == num_heads;
    if (!fits || biases.sizes[0] != 1) return invalid("biases: must be [1, T, heads, distances]");
    sight.biases = bound(biases);
    sight.num_biases = biases.sizes[3];
  }
  return sight;
}

Status Planner::add_attention() {
  MOTE_ASSIGN(const uint32_t index, cache_index());
  const GraphCache* cache = &graph_.caches[index];
  MOTE_RETURN_IF_ERROR(integer_below(1, int64_t{1} << 31));
  MOTE_RETURN_IF_ERROR(integer_below(2, int64_t{1} << 31));
  MOTE_RETURN_IF_ERROR(integer_below(3, 2));
  MOTE_RETURN_IF_ERROR(integer_below(4, node_->integers[1] > 0 ? 2 : 1));
  MOTE_RETURN_IF_ERROR(integer_below(5, node_->integers[1] > 0 ? 2 : int64_t{1} << 31));
  const Bound keys{Bind::keys, index, 0}, values{Bind::values, index, 0};
  MOTE_ASSIGN(const View q, heads("q", node_->inputs[0]));
  MOTE_ASSIGN(const View positions, integers("positions", node_->inputs[3]));
  const int64_t tokens = positions.count(), num_heads = q.sizes[1], kv_heads = cache->num_heads;
  const bool in_keys = cache->value_head_dim == 0, has_values = in_keys || cache->value_head_dim > 1;
  if (in_keys && node_->inputs[2].value >= 0) return invalid("v: the cache has values in its keys");
  if (q.sizes[2] != tokens || q.sizes[3] != cache->head_dim || num_heads % kv_heads != 0 || !has_values) {
    return invalid("q: does not fit the cache");
  }
  const bool has_sinks_of_tokens = node_->inputs[4].sizes.size() == 3;
  MOTE_ASSIGN(const Bound sinks,
              parameter("sinks", node_->inputs[4], has_sinks_of_tokens ? tokens * num_heads : num_heads));
  MOTE_ASSIGN(const Bound slopes, parameter("slopes", node_->inputs[5], num_heads));
  MOTE_ASSIGN(const Sight sight, sight_of(tokens, num_heads));
  const GraphView& out = node_->outputs[0];
  const int64_t width = !in_keys ? cache->value_head_dim : out.sizes.empty() ? 0 : out.sizes.back().at(tokens_);
  if (width < 2 || width % 2 != 0 || (in_keys && width > cache->head_dim))
    return invalid("outputs[0]: must be as wide as values, which are at most as wide as keys");
  MOTE_ASSIGN(const View y, whole("outputs[0]", out, tokens * num_heads * width));
  Bound lse{};
  if (node_->outputs.size() > 1) {
    MOTE_ASSIGN(const View sums, whole("outputs[1]", node_->outputs[1], tokens * num_heads));
    lse = bound(sums);
  }
  if (value_of(node_->inputs[3]).kind != fb::ValueKind::input) return invalid("positions: must be an input");
  plan_.positions.push_back(positions.value);
  if (node_->inputs[1].value >= 0)
    MOTE_RETURN_IF_ERROR(add_append(node_->inputs[1], keys, kv_heads, cache->head_dim, positions));
  if (node_->inputs[2].value >= 0)
    MOTE_RETURN_IF_ERROR(add_append(node_->inputs[2], values, kv_heads, width, positions));
  AttentionCall call{.cache = cache,
                     .num_heads = num_heads,
                     .value_width = width,
                     .y = y,
                     .lse = lse,
                     .bindings = {bound(q), keys, in_keys ? keys : values, bound(positions), sinks, slopes,
                                  sight.biases, sight.chosen, bound(y)},
                     .push = {word(kv_heads), word(tokens), word(q.offset), word(q.strides[1]), word(q.strides[2]),
                              word(node_->integers[1]), word(node_->numbers[0]), word(node_->numbers[1]), word(splits_),
                              word(node_->integers[2]), has_sinks_of_tokens ? word(num_heads) : 0,
                              word(sight.num_biases), word(sight.groups), word(sight.num_chosen)}};
  return tokens == 1 ? add_attention_of_one(std::move(call)) : add_attention_tiles(std::move(call), tokens);
}

Status Planner::require_shared(int64_t bytes) const {
  MOTE_REQUIRE(bytes <= device_.limits.maxComputeSharedMemorySize, Code::kUnsupportedBackend,
               "%s.nodes[%zu] (attention): takes %lld bytes of shared memory: the GPU has %u", graph_.place.c_str(),
               node_index_, static_cast<long long>(bytes), device_.limits.maxComputeSharedMemorySize);
  return {};
}

Dispatch Planner::attention_dispatch(AttentionCall call, int64_t heads, int64_t items) const {
  const GraphCache& cache = *call.cache;
  const int64_t stored = cache.head_dim + cache.value_head_dim;
  const auto is_there = [&](size_t binding) { return call.bindings[binding].kind != Bind::none; };
  return {.constants = {word(heads), word(cache.head_dim), word(call.value_width), 0, is_there(4), is_there(5),
                        word(ceil_div(items, kLanes)), word(call.num_heads / cache.num_heads), word(node_->integers[3]),
                        word(node_->integers[4]), is_there(6), is_there(7),
                        word(cache.value_head_dim == 0 ? cache.head_dim : cache.value_head_dim),
                        std::max(word(node_->integers[5]), 1u), call.lse.kind != Bind::none},
          .bindings = std::move(call.bindings),
          .writes = 0b100000000,
          .push = std::move(call.push),
          .of_position = {2 * cache.num_heads * stored, call.num_heads * (cache.head_dim + call.value_width)},
          .window = node_->integers[1]};
}

Status Planner::add_attention_of_one(AttentionCall call) {
  const GraphCache& cache = *call.cache;
  const int64_t together = call.num_heads / cache.num_heads, width = call.value_width;
  const int64_t heads =
      heads_of_a_workgroup(together, cache.head_dim, width, device_.limits.maxComputeSharedMemorySize);
  const int64_t shared = shared_bytes(heads, cache.head_dim), groups = cache.num_heads * ceil_div(together, heads);
  MOTE_RETURN_IF_ERROR(require_shared(shared));
  plan_.splits = splits_;
  plan_.parts_bytes = std::max(plan_.parts_bytes, static_cast<uint64_t>(4 * call.num_heads * splits_ * (width + 2)));
  const View y = call.y;
  const Bound lse = call.lse;
  Dispatch dispatch = attention_dispatch(std::move(call), heads, heads * width / 2);
  dispatch.shader = Shader::attend;
  dispatch.groups = {word(groups), 1, word(splits_)};
  dispatch.bindings.push_back({Bind::parts, 0, 0});
  dispatch.writes |= 0b1000000000;
  dispatch.push.push_back(word(groups));
  const bool has_lse = lse.kind != Bind::none;
  add_rounding(has_lse ? std::nullopt : rounded_by_last(y, kLanes, shared), y, groups + 1, &dispatch,
               dispatch.push.size());
  if (has_lse) dispatch.bindings[kTurnedBinding] = lse;
  return push(std::move(dispatch));
}

Status Planner::add_attention_tiles(AttentionCall call, int64_t tokens) {
  const GraphCache& cache = *call.cache;
  const int64_t together = call.num_heads / cache.num_heads, width = call.value_width;
  const int64_t rows =
      rows_of_tile(cache.head_dim, width, together * tokens, device_.limits.maxComputeSharedMemorySize);
  MOTE_RETURN_IF_ERROR(require_shared(shared_bytes_of_tile(rows, cache.head_dim)));
  const int64_t heads = std::min(together, rows);
  call.bindings.push_back(call.lse);
  const unsigned writes = call.lse.kind != Bind::none ? 0b1000000000 : 0;
  Dispatch dispatch = attention_dispatch(std::move(call), heads, rows / 4 * width / 2);
  dispatch.shader = Shader::attend_tile;
  dispatch.constants[3] = word(rows);
  dispatch.writes |= writes;
  dispatch.groups = {word(cache.num_heads * ceil_div(together, heads)), word(ceil_div(tokens, rows / heads)), 1};
  return push(std::move(dispatch));
}

}  // namespace mote::vulkan
