#include "backends/vulkan/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/vulkan/operands.h"
#include "base/size.h"
#include "kernels/formats.h"

namespace mote::vulkan {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr size_t kCodebookWord = 24;  // of what is pushed: tiles.glsl
constexpr int64_t kQueryHeads = 16, kLanes = 64, kColumnsOfASum = 32;
constexpr int64_t kGates = 8, kLayouts = 3, kFunctions = 28;
constexpr int64_t kFirstBinary = 22, kLastBinary = 27;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Planner : Operands {
 public:
  Planner(const Graph& graph, const std::vector<const DeviceWeight*>& weights, int64_t tokens, int64_t splits,
          const DeviceTraits& device)
      : Operands(graph, weights, tokens), splits_(splits), device_(device) {}

  Result<Plan> plan() {
    for (const LinearSize& slot : graph_.slots) {
      plan_.slot_offsets.push_back(plan_.arena_bytes);
      const Size bytes = Size(slot.at(tokens_)).align_up(kAlignment) + Size(plan_.arena_bytes);
      MOTE_REQUIRE(bytes.at_most(int64_t{1} << 40), Code::kOutOfMemory, "%s: its values take more than 2^40 bytes",
                   graph_.place.c_str());
      plan_.arena_bytes = bytes.unsigned_value();
    }
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      begin(index);
      MOTE_RETURN_IF_ERROR(add());
    }
    return std::move(plan_);
  }

 private:
  Status add() {
    switch (node_->op) {
      case fb::Op::embedding: return add_embedding();
      case fb::Op::rope_table: return add_rope_table();
      case fb::Op::norm: return add_norm();
      case fb::Op::quantize: return add_quantize();
      case fb::Op::product: return add_product(false);
      case fb::Op::group_product: return add_product(true);
      case fb::Op::quantize_groups: return add_quantize_groups();
      case fb::Op::float_product: return add_float_product();
      case fb::Op::rope: return add_rope();
      case fb::Op::attention: return add_attention();
      case fb::Op::map: return add_map();
      case fb::Op::rotate: return add_rotate();
    }
    return invalid("is not known");
  }

  // Dispatches.

  Status push(Dispatch dispatch) {
    for (size_t i = 0; i < 3; ++i) {
      MOTE_REQUIRE(dispatch.groups[i] <= device_.limits.maxComputeWorkGroupCount[i], Code::kUnsupportedBackend,
                   "%s.nodes[%zu] (%s): takes %u workgroups: the GPU takes at most %u", graph_.place.c_str(),
                   node_index_, fb::EnumNameOp(node_->op), dispatch.groups[i],
                   device_.limits.maxComputeWorkGroupCount[i]);
    }
    plan_.dispatches.push_back(std::move(dispatch));
    return {};
  }

  // As group_index() of common.glsl counts them.
  static std::array<uint32_t, 3> spread(int64_t groups) {
    const int64_t x = std::min<int64_t>(groups, 65535);
    return {word(x), word(ceil_div(groups, x)), 1};
  }

  uint32_t tokens_together(int64_t rows) const { return rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1; }

  static uint32_t dense_kind(const Tensor& tensor) {
    if (tensor.bits != 0) return 0;
    return tensor.dtype == DType::kFloat32 ? 1 : tensor.dtype == DType::kFloat16 ? 2 : 3;
  }
  static uint32_t bits_of(const Tensor& tensor) { return tensor.bits == 0 ? 4 : tensor.bits; }
  static uint32_t group_of(const Tensor& tensor) { return tensor.bits == 0 ? 32 : word(tensor.group_size); }

  // What tiles.glsl asks of a weight, behind the constants of the shader itself.
  static std::vector<uint32_t> with_tiles(std::vector<uint32_t> constants, const Tensor& tensor) {
    const TileScales& scales = tensor.scales;
    constants.resize(9);
    const bool is_plain = tensor.bits == 0 || scales.columns == 0;
    for (const uint32_t each :
         {is_plain ? 0 : word(scales.columns), is_plain ? 0 : word(static_cast<int>(scales.offset)),
          word(static_cast<int>(is_plain || scales.of_rows)), word(static_cast<int>(scales.codebook != nullptr))}) {
      constants.push_back(each);
    }
    return constants;
  }
  static std::vector<uint32_t> with_codebook(std::vector<uint32_t> push, const Tensor& tensor) {
    if (tensor.scales.codebook == nullptr) return push;
    push.resize(kCodebookWord + kCodebookSize / 4);
    std::memcpy(push.data() + kCodebookWord, tensor.scales.codebook, kCodebookSize);
    return push;
  }

  // A matrix that products and lookups read.
  Result<const DeviceWeight*> matrix(const char* name, const GraphView& from, bool only_tiles) const {
    const DeviceWeight* weight = weight_of(from);
    const fb::Content content = value_of(from).content;
    const bool fits =
        weight != nullptr && (content == fb::Content::tiles || (content == fb::Content::dense && !only_tiles));
    if (!fits) return invalid("%s: must be a matrix of weights", name);
    if (weight->pieces.front().bytes / 4 > static_cast<uint64_t>(kMaxIndex)) {
      return invalid("%s: has too many elements for a GPU", name);
    }
    return weight;
  }

  Status add_embedding() {
    MOTE_ASSIGN(const View ids, integers("inputs[0]", node_->inputs[0]));
    MOTE_ASSIGN(const DeviceWeight* table, matrix("inputs[1]", node_->inputs[1], false));
    const int64_t count = ids.count(), columns = table->tensor.size(1);
    MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], count * columns));
    plan_.ids.emplace_back(ids.value, table->tensor.size(0));
    for (size_t piece = 0; piece < table->pieces.size(); ++piece) {
      const WeightPiece& part = table->pieces[piece];
      const Tensor& tensor = table->tensor;
      MOTE_RETURN_IF_ERROR(
          push({.shader = Shader::embedding,
                .constants = with_tiles({bits_of(tensor), group_of(tensor), 1, 0, 0, 0, dense_kind(tensor)}, tensor),
                .groups = spread(count),
                .bindings = {bound(ids), {Bind::weight, value_of(node_->inputs[1]).weight, word(piece)}, bound(y)},
                .writes = 0b100,
                .push = with_codebook({word(columns), word(count), word(part.rows), word(part.first_row)}, tensor)}));
    }
    return {};
  }

  Status add_rope_table() {
    MOTE_RETURN_IF_ERROR(integer_below(0, 2));
    MOTE_ASSIGN(const View positions, integers("inputs[0]", node_->inputs[0]));
    MOTE_ASSIGN(const View frequencies, whole("inputs[1]", node_->inputs[1], 0));
    const int64_t count = positions.count(), pairs = frequencies.count();
    MOTE_ASSIGN(const View cosines, whole("outputs[0]", node_->outputs[0], 2 * count * pairs));
    MOTE_ASSIGN(const View sines, whole("outputs[1]", node_->outputs[1], 2 * count * pairs));
    return push({.shader = Shader::rope_table,
                 .constants = {word(node_->integers[0])},
                 .groups = spread(ceil_div(count * pairs, kLanes)),
                 .bindings = {bound(positions), bound(frequencies), bound(cosines), bound(sines)},
                 .writes = 0b1100,
                 .push = {word(count), word(pairs), word(node_->numbers[0])}});
  }

  std::vector<uint32_t> row_words(const RowsView& x) const {
    return {word(x.columns),         word(x.count()),         word(x.inner),           word(x.view.offset),
            word(x.view.strides[0]), word(x.view.strides[1]), word(node_->numbers[0]), word(node_->numbers[1])};
  }

  Status add_norm() {
    MOTE_RETURN_IF_ERROR(integer_below(0, 3));
    MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
    MOTE_ASSIGN(const Bound weight, parameter("inputs[1]", node_->inputs[1], x.columns));
    MOTE_ASSIGN(const Bound bias, parameter("inputs[2]", node_->inputs[2], x.columns));
    MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count() * x.columns));
    return push({.shader = Shader::norm,
                 .constants = {word(node_->integers[0]), weight.kind != Bind::none, bias.kind != Bind::none},
                 .groups = spread(x.count()),
                 .bindings = {bound(x.view), weight, bias, bound(y)},
                 .writes = 0b1000,
                 .push = row_words(x)});
  }

  // codes, and for each row its scale with its zero point and sums of 32 codes; in groups scales of 32 codes and sums
  // of 16
  Status check_codes(const std::vector<GraphView>& views, int64_t rows, int64_t columns, bool in_groups) const {
    if (columns % kColumnsOfASum != 0) {
      return invalid("%lld columns: must be a multiple of 32", static_cast<long long>(columns));
    }
    const Size sums = Size(4 * rows) * Size(columns / kColumnsOfASum);
    MOTE_RETURN_IF_ERROR(needs_bytes("codes", views[0], Size(2 * rows) * Size(columns)));
    MOTE_RETURN_IF_ERROR(needs_bytes("scales", views[1], in_groups ? sums : Size(8 * rows)));
    return needs_bytes("sums", views[2], in_groups ? sums + sums : sums);
  }

  Status add_rotate() {
    MOTE_RETURN_IF_ERROR(integer_below(0, 2));
    MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
    if (x.columns % kTileRows != 0) {
      return invalid("%lld columns: must be a multiple of 16", static_cast<long long>(x.columns));
    }
    MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count() * x.columns));
    const auto turned = std::bit_floor(static_cast<uint64_t>(x.columns));
    const int log2 = std::countr_zero(turned);
    const float scale = std::ldexp(log2 % 2 == 0 ? 1.0f : 0x1.6a09e6p-1f, -(log2 / 2));  // 1 / sqrt(turned)
    return push({.shader = Shader::rotate,
                 .constants = {word(node_->integers[0])},
                 .groups = spread(x.count()),
                 .bindings = {bound(x.view), bound(y)},
                 .writes = 0b10,
                 .push = {word(x.columns), word(x.count()), word(x.inner), word(x.view.offset), word(x.view.strides[0]),
                          word(x.view.strides[1]), word(turned), word(scale)}});
  }

  Status add_quantize() {
    MOTE_RETURN_IF_ERROR(integer_below(0, 2));
    MOTE_RETURN_IF_ERROR(integer_below(1, 2));
    MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
    MOTE_ASSIGN(const Bound weight, parameter("inputs[1]", node_->inputs[1], x.columns));
    MOTE_RETURN_IF_ERROR(check_codes(node_->outputs, x.count(), x.columns, false));
    std::vector<Bound> bindings{bound(x.view), weight};
    for (const GraphView& output : node_->outputs) bindings.push_back(bound(static_cast<uint32_t>(output.value)));
    return push({.shader = Shader::quantize,
                 .constants = {word(node_->integers[0]), weight.kind != Bind::none, word(node_->integers[1])},
                 .groups = spread(x.count()),
                 .bindings = std::move(bindings),
                 .writes = 0b11100,
                 .push = row_words(x)});
  }

  // What both kinds of product have in common.
  struct Product {
    const DeviceWeight* weight = nullptr;
    uint32_t weight_index = 0;
    uint32_t gate = 0;
    int64_t columns = 0, out = 0, rows = 0;
    Bound bias{}, residual{}, y{};
    uint32_t residual_offset = 0, residual_stride = 0;
  };

  Result<Product> product_of(size_t first, bool only_tiles) const {
    Product made;
    MOTE_RETURN_IF_ERROR(integer_below(0, kGates));
    made.gate = word(node_->integers[0]);
    MOTE_ASSIGN(made.weight, matrix("weight", node_->inputs[first], only_tiles));
    made.weight_index = value_of(node_->inputs[first]).weight;
    const int64_t rows_of_weight = made.weight->tensor.size(0);
    made.columns = made.weight->tensor.size(1);
    if (made.gate != 0 && rows_of_weight % 2 != 0) return invalid("weight: must have as many gates as others");
    made.out = made.gate != 0 ? rows_of_weight / 2 : rows_of_weight;
    MOTE_REQUIRE(made.gate == 0 || made.weight->pieces.size() == 1, Code::kUnsupportedBackend,
                 "%s.nodes[%zu] (%s): the weight is larger than what the GPU binds at once", graph_.place.c_str(),
                 node_index_, fb::EnumNameOp(node_->op));
    MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], 0));
    if (y.count() % made.out != 0) return invalid("outputs[0]: must be rows of %lld", static_cast<long long>(made.out));
    made.rows = y.count() / made.out;
    made.y = bound(y);
    MOTE_ASSIGN(made.bias, parameter("bias", node_->inputs[first + 1], rows_of_weight));
    if (node_->inputs[first + 2].value >= 0) {
      MOTE_ASSIGN(const RowsView residual, rows("residual", node_->inputs[first + 2]));
      if (residual.outer != 1 || residual.inner != made.rows || residual.columns != made.out) {
        return invalid("residual: must have the sizes of the output");
      }
      made.residual = bound(residual.view);
      made.residual_offset = word(residual.view.offset);
      made.residual_stride = word(residual.view.strides[1]);
    }
    return made;
  }

  // in_groups: inputs are rounded in groups, and tiles may have any scales
  Status add_product(bool in_groups) {
    MOTE_ASSIGN(const Product product, product_of(3, true));
    const Tensor& tensor = product.weight->tensor;
    MOTE_RETURN_IF_ERROR(check_codes(node_->inputs, product.rows, product.columns, in_groups));
    if (product.gate != 0 && product.out % kTileRows != 0) return invalid("weight: gates must be a multiple of 16");
    if (!in_groups && !(tensor.scales == TileScales{})) return invalid("weight: must have no float16 scales");
    const uint32_t together = tokens_together(product.rows);
    // A device with few lanes has no use for many invocations, which wait for each other at a cost.
    const uint32_t blocks = device_.is_cpu ? 2 : in_groups ? 16 : 4, splits = device_.is_cpu || in_groups ? 1 : 4;
    for (size_t piece = 0; piece < product.weight->pieces.size(); ++piece) {
      const WeightPiece& part = product.weight->pieces[piece];
      const int64_t rows = product.gate != 0 ? product.out : part.rows;
      std::vector<Bound> bindings;
      for (size_t i = 0; i < 3; ++i) bindings.push_back(bound(static_cast<uint32_t>(node_->inputs[i].value)));
      bindings.push_back({Bind::weight, product.weight_index, word(piece)});
      if (!in_groups) bindings.push_back({Bind::row_sums, product.weight_index, 0});
      for (const Bound& each : {product.bias, product.residual, product.y}) bindings.push_back(each);
      const unsigned writes = 1u << (bindings.size() - 1);
      MOTE_RETURN_IF_ERROR(
          push({.shader = in_groups ? Shader::group_product : Shader::product,
                .constants =
                    with_tiles({tensor.bits, word(tensor.group_size), together, product.bias.kind != Bind::none,
                                product.residual.kind != Bind::none, product.gate, 4 * blocks * splits, blocks, splits},
                               tensor),
                .groups = {word(ceil_div(rows, kTileRows * blocks)), word(ceil_div(product.rows, together)), 1},
                .bindings = std::move(bindings),
                .writes = writes,
                .push = with_codebook({word(product.columns), word(product.rows), word(part.first_row + rows),
                                       word(part.first_row), word(product.out), product.residual_offset,
                                       product.residual_stride, word(product.out / kTileRows), word(tensor.size(0))},
                                      tensor)}));
    }
    return {};
  }

  Status add_quantize_groups() {
    MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
    MOTE_RETURN_IF_ERROR(check_codes(node_->outputs, x.count(), x.columns, true));
    std::vector<Bound> bindings{bound(x.view)};
    for (const GraphView& output : node_->outputs) bindings.push_back(bound(static_cast<uint32_t>(output.value)));
    return push({.shader = Shader::quantize_groups,
                 .constants = {},
                 .groups = spread(ceil_div(x.count() * (x.columns / kColumnsOfASum), kLanes)),
                 .bindings = std::move(bindings),
                 .writes = 0b1110,
                 .push = {word(x.columns), word(x.count()), word(x.inner), word(x.view.offset), word(x.view.strides[0]),
                          word(x.view.strides[1])}});
  }

  Status add_float_product() {
    MOTE_ASSIGN(const Product product, product_of(1, false));
    MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
    if (x.columns != product.columns || x.count() != product.rows) return invalid("inputs[0]: does not fit the weight");
    const Tensor& tensor = product.weight->tensor;
    const uint32_t together = tokens_together(product.rows);
    for (size_t piece = 0; piece < product.weight->pieces.size(); ++piece) {
      const WeightPiece& part = product.weight->pieces[piece];
      const int64_t rows = product.gate != 0 ? product.out : part.rows;
      MOTE_RETURN_IF_ERROR(
          push({.shader = Shader::float_product,
                .constants = with_tiles({bits_of(tensor), group_of(tensor), together, product.bias.kind != Bind::none,
                                         product.residual.kind != Bind::none, product.gate, dense_kind(tensor)},
                                        tensor),
                .groups = {word(rows), word(ceil_div(product.rows, together)), 1},
                .bindings = {bound(x.view),
                             {Bind::weight, product.weight_index, word(piece)},
                             product.bias,
                             product.residual,
                             product.y},
                .writes = 0b10000,
                .push = with_codebook(
                    {word(product.columns), word(product.rows), word(part.first_row + rows), word(part.first_row),
                     word(product.out), product.residual_offset, product.residual_stride, word(product.out),
                     word(x.inner), word(x.view.offset), word(x.view.strides[0]), word(x.view.strides[1])},
                    tensor)}));
    }
    return {};
  }

  // [1, H, T, D] with neighbours in D.
  Result<View> heads(const char* name, const GraphView& from) const {
    MOTE_ASSIGN(View made, floats(name, from));
    if (made.sizes.size() != 4 || made.sizes[0] != 1 || (made.strides[3] != 1 && made.sizes[3] != 1)) {
      return invalid("%s: must be [1, heads, tokens, width] with neighbours in the last", name);
    }
    return made;
  }

  Status add_rope() {
    MOTE_RETURN_IF_ERROR(integer_below(0, kLayouts));
    MOTE_ASSIGN(const View x, heads("inputs[0]", node_->inputs[0]));
    MOTE_ASSIGN(const View cosines, floats("inputs[1]", node_->inputs[1]));
    MOTE_ASSIGN(const View sines, floats("inputs[2]", node_->inputs[2]));
    for (const View* table : {&cosines, &sines}) {
      const bool fits = table->sizes.size() == 3 && table->sizes[0] == 1 && table->sizes[1] == x.sizes[2] &&
                        table->strides[2] == 1 && table->sizes[2] == cosines.sizes[2];
      if (!fits) return invalid("cos, sin: must be [1, %lld, columns]", static_cast<long long>(x.sizes[2]));
    }
    const int64_t turned = cosines.sizes[2];
    if (turned % 2 != 0 || turned > x.sizes[3]) return invalid("cos: has %lld columns", static_cast<long long>(turned));
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

  Status add_append(const GraphView& from, const Bound& cache, int64_t num_heads, int64_t width,
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

  Status add_attention() {
    const auto cache =
        std::ranges::find_if(graph_.caches, [&](const GraphCache& each) { return each.state == node_->integers[0]; });
    if (cache == graph_.caches.end())
      return invalid("state %lld: has no cache", static_cast<long long>(node_->integers[0]));
    MOTE_RETURN_IF_ERROR(integer_below(1, int64_t{1} << 31));
    const auto index = static_cast<uint32_t>(cache - graph_.caches.begin());
    const Bound keys{Bind::keys, index, 0}, values{Bind::values, index, 0};
    MOTE_ASSIGN(const View q, heads("q", node_->inputs[0]));
    MOTE_ASSIGN(const View positions, integers("positions", node_->inputs[3]));
    const int64_t tokens = positions.count(), num_heads = q.sizes[1], kv_heads = cache->num_heads;
    if (q.sizes[2] != tokens || q.sizes[3] != cache->head_dim || num_heads % kv_heads != 0 ||
        num_heads / kv_heads > kQueryHeads) {
      return invalid("q: does not fit the cache");
    }
    MOTE_ASSIGN(const Bound sinks, parameter("sinks", node_->inputs[4], num_heads));
    MOTE_ASSIGN(const Bound slopes, parameter("slopes", node_->inputs[5], num_heads));
    const int64_t width = cache->value_head_dim, together = num_heads / kv_heads;
    MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], tokens * num_heads * width));
    plan_.positions.push_back(positions.value);
    if (node_->inputs[1].value >= 0)
      MOTE_RETURN_IF_ERROR(add_append(node_->inputs[1], keys, kv_heads, cache->head_dim, positions));
    if (node_->inputs[2].value >= 0)
      MOTE_RETURN_IF_ERROR(add_append(node_->inputs[2], values, kv_heads, width, positions));
    const bool is_split = tokens == 1;
    const auto shared = static_cast<uint32_t>(4 * together * (cache->head_dim + kLanes + 3));
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
              .constants = {word(together), word(cache->head_dim), word(width), is_split, has_sinks,
                            slopes.kind != Bind::none, word(ceil_div(together * width / 2, kLanes))},
              .groups = {word(kv_heads), word(tokens), is_split ? word(splits_) : 1},
              .bindings = {bound(q), keys, values, bound(positions), sinks, slopes, out},
              .writes = 0b1000000,
              .push = {word(kv_heads), word(tokens), word(q.offset), word(q.strides[1]), word(q.strides[2]),
                       word(node_->integers[1]), word(node_->numbers[0]), word(node_->numbers[1]), word(splits_)}}));
    if (!is_split) return {};
    return push({.shader = Shader::combine,
                 .constants = {0, 0, word(width), 0, has_sinks},
                 .groups = {word(num_heads), word(tokens), 1},
                 .bindings = {out, bound(positions), sinks, bound(y)},
                 .writes = 0b1000,
                 .push = {word(num_heads), word(tokens), word(splits_), word(node_->integers[1])}});
  }

  Status add_map() {
    MOTE_RETURN_IF_ERROR(integer_below(0, kFunctions));
    const bool is_binary = node_->integers[0] >= kFirstBinary && node_->integers[0] <= kLastBinary;
    if (node_->inputs.size() != (is_binary ? 2 : 1)) return invalid("has %zu inputs", node_->inputs.size());
    MOTE_ASSIGN(const View y, floats("outputs[0]", node_->outputs[0]));
    if (y.sizes.size() != 4) return invalid("outputs[0]: must have 4 sizes");
    std::vector<uint32_t> words;
    for (const int64_t size : y.sizes) words.push_back(word(size));
    std::vector<Bound> bindings;
    const auto add_words = [&](const View& view) {
      words.push_back(word(view.offset));
      for (const int64_t stride : view.strides) words.push_back(word(stride));
    };
    add_words(y);
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      if (node_->inputs[i].value < 0) return invalid("inputs[%zu]: is absent", i);
      MOTE_ASSIGN(const View x, floats("inputs", node_->inputs[i]));
      if (x.sizes != y.sizes) return invalid("inputs[%zu]: must have the sizes of the output", i);
      add_words(x);
      bindings.push_back(bound(x));
    }
    if (!is_binary) bindings.push_back({});
    words.resize(19);
    bindings.push_back(bound(y));
    return push({.shader = Shader::map,
                 .constants = {word(node_->integers[0])},
                 .groups = spread(ceil_div(y.count(), kLanes)),
                 .bindings = std::move(bindings),
                 .writes = 0b100,
                 .push = std::move(words)});
  }

  const int64_t splits_;
  const DeviceTraits& device_;
  Plan plan_;
};

}  // namespace

Result<Plan> make_plan(const Graph& graph, const std::vector<const DeviceWeight*>& weights, int64_t tokens,
                       int64_t splits, const DeviceTraits& device) {
  return Planner(graph, weights, tokens, splits, device).plan();
}

}  // namespace mote::vulkan
