// Attention over the caches, and what turns queries and keys.
#include <algorithm>
#include <array>

#include "backends/vulkan/planner.h"

namespace mote::vulkan {
namespace {

constexpr int64_t kQueryHeads = 16,  // of a workgroup
    kLayouts = 3;
constexpr size_t kKeptConstant = 17;  // of quantize.glsl

uint32_t shared_bytes(int64_t num_heads, int64_t width) { return word(4 * num_heads * (width + kLanes + 3)); }

int64_t heads_of_a_workgroup(int64_t together, int64_t width, const VkPhysicalDeviceLimits& limits) {
  int64_t heads = std::min(together, kQueryHeads);
  while (heads > 1 && shared_bytes(heads, width) > limits.maxComputeSharedMemorySize) --heads;
  return heads;
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
  const Bound keys{Bind::keys, index, 0}, values{Bind::values, index, 0};
  MOTE_ASSIGN(const View q, heads("q", node_->inputs[0]));
  MOTE_ASSIGN(const View positions, integers("positions", node_->inputs[3]));
  const int64_t tokens = positions.count(), num_heads = q.sizes[1], kv_heads = cache->num_heads;
  const bool has_values = cache->value_head_dim > 1;
  if (q.sizes[2] != tokens || q.sizes[3] != cache->head_dim || num_heads % kv_heads != 0 || !has_values) {
    return invalid("q: does not fit the cache");
  }
  const bool has_sinks_of_tokens = node_->inputs[4].sizes.size() == 3;
  MOTE_ASSIGN(const Bound sinks,
              parameter("sinks", node_->inputs[4], has_sinks_of_tokens ? tokens * num_heads : num_heads));
  MOTE_ASSIGN(const Bound slopes, parameter("slopes", node_->inputs[5], num_heads));
  MOTE_ASSIGN(const Sight sight, sight_of(tokens, num_heads));
  const int64_t width = cache->value_head_dim, together = num_heads / kv_heads;
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], tokens * num_heads * width));
  if (value_of(node_->inputs[3]).kind != fb::ValueKind::input) return invalid("positions: must be an input");
  plan_.positions.push_back(positions.value);
  if (node_->inputs[1].value >= 0)
    MOTE_RETURN_IF_ERROR(add_append(node_->inputs[1], keys, kv_heads, cache->head_dim, positions));
  if (node_->inputs[2].value >= 0)
    MOTE_RETURN_IF_ERROR(add_append(node_->inputs[2], values, kv_heads, width, positions));
  const bool is_split = tokens == 1;
  const int64_t heads_at_once = heads_of_a_workgroup(together, cache->head_dim, device_.limits);
  const uint32_t shared = shared_bytes(heads_at_once, cache->head_dim);
  MOTE_REQUIRE(shared <= device_.limits.maxComputeSharedMemorySize, Code::kUnsupportedBackend,
               "%s.nodes[%zu] (attention): takes %u bytes of shared memory: the GPU has %u", graph_.place.c_str(),
               node_index_, shared, device_.limits.maxComputeSharedMemorySize);
  const Bound out = is_split ? Bound{Bind::parts, 0, 0} : bound(y);
  if (is_split) {
    plan_.parts_bytes = std::max(plan_.parts_bytes, static_cast<uint64_t>(4 * num_heads * splits_ * (width + 2)));
  }
  const uint32_t has_sinks = sinks.kind != Bind::none;
  MOTE_RETURN_IF_ERROR(
      push({.shader = Shader::attend,
            .constants = {word(heads_at_once), word(cache->head_dim), word(width), is_split, has_sinks,
                          slopes.kind != Bind::none, word(ceil_div(heads_at_once * width / 2, kLanes)), word(together),
                          word(node_->integers[3]), word(node_->integers[4]), sight.biases.kind != Bind::none,
                          sight.chosen.kind != Bind::none},
            .groups = {word(kv_heads * ceil_div(together, heads_at_once)), word(tokens), is_split ? word(splits_) : 1},
            .bindings = {bound(q), keys, values, bound(positions), sinks, slopes, out, sight.biases, sight.chosen},
            .writes = 0b1000000,
            .push = {word(kv_heads), word(tokens), word(q.offset), word(q.strides[1]), word(q.strides[2]),
                     word(node_->integers[1]), word(node_->numbers[0]), word(node_->numbers[1]), word(splits_),
                     word(node_->integers[2]), has_sinks_of_tokens ? word(num_heads) : 0, word(sight.num_biases),
                     word(sight.groups), word(sight.num_chosen)},
            .of_position = {2 * kv_heads * (cache->head_dim + width), num_heads * (cache->head_dim + width)},
            .window = node_->integers[1]}));
  return is_split ? add_combine({bound(positions), sinks, y, num_heads, width}) : Status();
}

Status Planner::add_combine(const Combined& heads) {
  const int64_t window = node_->integers[1], first = node_->integers[2];
  MOTE_ASSIGN(const bool is_rounded, add_combine_round(heads, window, first));
  if (is_rounded) return {};
  return push({.shader = Shader::combine,
               .constants = {0, 0, word(heads.width), 0, heads.sinks.kind != Bind::none},
               .groups = {word(heads.num_heads), 1, 1},
               .bindings = {{Bind::parts, 0, 0}, heads.positions, heads.sinks, bound(heads.y)},
               .writes = 0b1000,
               .push = {word(heads.num_heads), 1, word(splits_), word(window), word(first)}});
}

bool Planner::next_alone_rounds(const View& y) const {
  const size_t next = node_index_ + 1;
  if (next >= graph_.nodes.size() || graph_.nodes[next].op != fb::Op::quantize) return false;
  if (graph_.nodes[next].inputs.empty() || value_of(node_->outputs[0]).kind != fb::ValueKind::scratch) return false;
  size_t num_readers = 0;
  for (const GraphNode& node : graph_.nodes) {
    for (const GraphView& input : node.inputs) num_readers += input.value == node_->outputs[0].value ? 1 : 0;
  }
  return num_readers == 1 && graph_.nodes[next].inputs[0].value == node_->outputs[0].value && y.count() % 32 == 0;
}

// Where one workgroup does it all: as many as leave room for the row in shared memory, as far as 64 do.
uint32_t Planner::lanes_of_a_row(int64_t columns) const {
  if (device_.is_cpu) return 8;
  const uint32_t most =
      std::min(device_.limits.maxComputeWorkGroupInvocations, device_.limits.maxComputeWorkGroupSize[0]);
  uint32_t lanes = 1024;
  while (lanes > 64 &&
         (lanes > most || 4 * (columns + 2 * int64_t{lanes} + 1) > device_.limits.maxComputeSharedMemorySize))
    lanes /= 2;
  return lanes;
}

Result<bool> Planner::add_combine_round(const Combined& heads, int64_t window, int64_t first) {
  if (!next_alone_rounds(heads.y)) return false;
  const size_t own = node_index_;
  begin(own + 1);
  MOTE_ASSIGN(Quantized made, quantized_of(lanes_of_a_row(heads.y.count())));
  const bool is_whole = made.x.count() == 1 && made.x.view.offset == 0 && made.x.columns == heads.y.count();
  if (!is_whole || (made.constants[kKeptConstant] == 0 && made.turned.kind == Bind::none)) {
    begin(own);
    return false;
  }
  made.constants[2] = word(heads.width);
  made.constants[4] = static_cast<uint32_t>(heads.sinks.kind != Bind::none);
  std::vector<Bound> bindings{{Bind::parts, 0, 0}, made.weight};
  bindings.insert(bindings.end(), made.outputs.begin(), made.outputs.end());
  for (const Bound& each : {made.turned, heads.positions, heads.sinks}) bindings.push_back(each);
  std::vector<uint32_t> words{word(splits_), word(window), word(first)};
  words.resize(8);
  words.insert(words.end(), made.push.begin(), made.push.end());
  MOTE_RETURN_IF_ERROR(push({.shader = Shader::combine_round,
                             .constants = std::move(made.constants),
                             .bindings = std::move(bindings),
                             .writes = 0b111100,
                             .push = std::move(words)}));
  joined_ = own + 1;
  return true;
}

}  // namespace mote::vulkan
