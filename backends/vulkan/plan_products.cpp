// Products with weights, what rounds their inputs, lookups.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/vulkan/planner.h"
#include "kernels/formats.h"

namespace mote::vulkan {
namespace {

constexpr size_t kCodebookWord = 24;                                  // of what is pushed: tiles.glsl
constexpr size_t kExpertWord = 16;                                    // experts.glsl
constexpr size_t kEndedWord = 9, kGateWord = 28, kGateConstant = 29;  // products.glsl, rounds.glsl
constexpr size_t kFloatEndedWord = 12, kFloatRoundingWord = 24;       // float_product.glsl
constexpr int64_t kColumnsOfASum = 32, kGates = 8, kMaxPairs = 1 << 10, kOfHeads = -1;
// Of a row that the last workgroup of a product rounds: more are better shared by more invocations.
constexpr int64_t kMostRoundedByLast = 4096;

uint32_t tokens_together(int64_t rows) { return rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1; }

// Rows may lie in one dimension, all of them with one stride.
int64_t step_of_rows(const View& view, int64_t columns) {
  return view.sizes[2] == 1 ? columns * view.strides[3] : view.strides[2];
}

uint32_t dense_kind(const Tensor& tensor) {
  if (tensor.bits != 0) return 0;
  return tensor.dtype == DType::kFloat32 ? 1 : tensor.dtype == DType::kFloat16 ? 2 : 3;
}
uint32_t bits_of(const Tensor& tensor) { return tensor.bits == 0 ? 4 : tensor.bits; }
uint32_t group_of(const Tensor& tensor) { return tensor.bits == 0 ? 32 : word(tensor.group_size); }

// What tiles.glsl asks of a weight, behind the constants of the shader itself.
// pairs, is_ordered, heads: experts.glsl   stage: product.glsl
std::vector<uint32_t> with_tiles(std::vector<uint32_t> constants, const Tensor& tensor, int64_t pairs = 0,
                                 uint32_t stage = 1, bool is_ordered = false, int64_t heads = 0) {
  const TileScales& scales = tensor.scales;
  constants.resize(9);
  const bool is_plain = tensor.bits == 0 || scales.columns == 0;
  for (const uint32_t each :
       {is_plain ? 0 : word(scales.columns), is_plain ? 0 : word(static_cast<int>(scales.offset)),
        word(static_cast<int>(is_plain || scales.of_rows)), word(static_cast<int>(scales.codebook != nullptr))}) {
    constants.push_back(each);
  }
  constants.push_back(word(pairs));
  constants.push_back(stage);
  constants.push_back(static_cast<uint32_t>(is_ordered));
  constants.push_back(word(heads));
  return constants;
}

std::vector<uint32_t> with_codebook(std::vector<uint32_t> push, const Tensor& tensor) {
  if (tensor.scales.codebook == nullptr) return push;
  push.resize(std::max(push.size(), kCodebookWord + kCodebookSize / 4));
  std::memcpy(push.data() + kCodebookWord, tensor.scales.codebook, kCodebookSize);
  return push;
}

}  // namespace

Result<const DeviceWeight*> Planner::matrix(const char* name, const GraphView& from, bool only_tiles, int rank) const {
  const DeviceWeight* weight = weight_of(from);
  const fb::Content content = value_of(from).content;
  const bool fits =
      weight != nullptr && (content == fb::Content::tiles || (content == fb::Content::dense && !only_tiles));
  if (!fits || weight->tensor.rank != rank) {
    return invalid("%s: must be a %s of weights", name, rank == 3 ? "stack of matrices" : "matrix");
  }
  if (weight->pieces.front().bytes / 4 > static_cast<uint64_t>(kMaxIndex)) {
    return invalid("%s: has too many elements for a GPU", name);
  }
  return weight;
}

Status Planner::check_codes(const std::vector<GraphView>& views, int64_t rows, int64_t columns, bool in_groups) const {
  if (columns % kColumnsOfASum != 0) {
    return invalid("%lld columns: must be a multiple of 32", static_cast<long long>(columns));
  }
  const Size sums = Size(4 * rows) * Size(columns / kColumnsOfASum);
  MOTE_RETURN_IF_ERROR(needs_bytes("codes", views[0], Size(2 * rows) * Size(columns)));
  MOTE_RETURN_IF_ERROR(needs_bytes("scales", views[1], in_groups ? sums : Size(8 * rows)));
  return needs_bytes("sums", views[2], in_groups ? sums + sums : sums);
}

Status Planner::add_embedding() {
  MOTE_ASSIGN(const View ids, integers("inputs[0]", node_->inputs[0]));
  MOTE_ASSIGN(const DeviceWeight* table, matrix("inputs[1]", node_->inputs[1], false));
  const int64_t count = ids.count(), columns = table->tensor.size(1);
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], count * columns));
  if (value_of(node_->inputs[0]).kind == fb::ValueKind::input) {
    plan_.ids.emplace_back(ids.value, table->tensor.size(0));
  }
  for (size_t piece = 0; piece < table->pieces.size(); ++piece) {
    const WeightPiece& part = table->pieces[piece];
    const Tensor& tensor = table->tensor;
    const int64_t row_bytes = static_cast<int64_t>(part.bytes) / std::max<int64_t>(part.rows, 1);
    MOTE_RETURN_IF_ERROR(push(
        {.shader = Shader::embedding,
         .constants = with_tiles({bits_of(tensor), group_of(tensor), 1, 0, 0, 0, dense_kind(tensor)}, tensor),
         .groups = spread(count),
         .bindings = {bound(ids), {Bind::weight, value_of(node_->inputs[1]).weight, word(piece)}, bound(y)},
         .writes = 0b100,
         .push = with_codebook(
             {word(columns), word(count), word(part.rows), word(part.first_row), word(table->tensor.size(0))}, tensor),
         .cost = {count * (row_bytes + 4 * columns + 8), 0}}));
  }
  return {};
}

Result<Planner::Quantized> Planner::quantized_of(uint32_t lanes, int64_t shared_bytes) const {
  Quantized made;
  const bool in_groups = node_->op == fb::Op::quantize_groups;
  for (size_t i = 0; i < node_->integers.size(); ++i)
    MOTE_RETURN_IF_ERROR(integer_below(i, i == 0 && !in_groups ? 3 : 2));
  MOTE_ASSIGN(made.x, rows("inputs[0]", node_->inputs[0]));
  const int64_t columns = made.x.columns;
  MOTE_ASSIGN(made.weight, parameter("inputs[1]", node_->inputs[1], columns));
  MOTE_RETURN_IF_ERROR(check_codes(node_->outputs, made.x.count(), columns, in_groups));
  for (size_t i = 0; i < 3; ++i) made.outputs.push_back(bound(static_cast<uint32_t>(node_->outputs[i].value)));
  const bool is_rotated = !in_groups && node_->integers[2] != 0;
  const uint32_t norm_lanes = std::array{0u, 16u, 64u}[static_cast<size_t>(node_->integers[0])];
  const int64_t others = 4 * (std::max(lanes, norm_lanes) + lanes + 2) + shared_bytes;
  const bool is_kept = 4 * columns + others <= device_.limits.maxComputeSharedMemorySize;
  const bool norms_for_others = norm_lanes == 64;
  if (norms_for_others || (is_rotated && !is_kept)) {
    // One place for rows: those behind the norm, or those that are turned.
    if (norms_for_others && node_->outputs.size() < 4) return invalid("outputs[3]: is absent");
    if (node_->outputs.size() < 4 || (norms_for_others && is_rotated && !is_kept)) {
      return invalid("%lld columns: do not fit the GPU's shared memory", static_cast<long long>(columns));
    }
    MOTE_ASSIGN(const View turned, whole("outputs[3]", node_->outputs[3], made.x.count() * columns));
    made.turned = bound(turned);
  }
  const Turn turn = turn_of(columns);
  made.is_shared = in_groups && norm_lanes == 0;
  made.constants = {norm_lanes,
                    made.weight.kind != Bind::none,
                    !in_groups && node_->integers[1] != 0,
                    is_rotated,
                    is_kept ? word(columns) : 0,
                    lanes,
                    takes_packed_codes(),
                    in_groups};
  made.push = {word(columns), word(node_->numbers[0]), word(node_->numbers[1]), word(turn.columns), word(turn.scale)};
  return made;
}

Status Planner::add_quantize() {
  // A device with few lanes has no use for many invocations, which wait for each other at a cost.
  const uint32_t lanes = device_.is_cpu ? 8 : 64;
  MOTE_ASSIGN(Quantized made, quantized_of(lanes, 0));
  const int64_t parts = made.is_shared ? ceil_div(made.x.columns, kColumnsOfASum * lanes) : 1;
  if (parts > 1) made.constants[kKept - kRoundingConstants] = 0;
  const std::optional<Gate> gate = std::exchange(gate_, std::nullopt);
  std::vector<uint32_t> constants{gate.has_value(), gate ? gate->function : 0, 0, 0, 0, 0, lanes};
  constants.resize(kRoundingConstants);
  constants.insert(constants.end(), made.constants.begin(), made.constants.end());
  const RowsView& x = made.x;
  std::vector<Bound> bindings{gate ? bound(gate->gate) : bound(x.view), made.weight};
  bindings.insert(bindings.end(), made.outputs.begin(), made.outputs.end());
  // Tools that look for races take it for written, whatever is bound there.
  bindings.push_back(made.turned.kind == Bind::none ? made.outputs[0] : made.turned);
  bindings.push_back(gate ? bound(gate->up) : Bound());
  std::vector<uint32_t> push_words{word(x.count()),         word(x.inner),           word(x.view.offset),
                                   word(x.view.strides[0]), word(x.view.strides[1]), word(parts)};
  push_words.resize(8);
  push_words.insert(push_words.end(), made.push.begin(), made.push.end());
  if (gate) {
    const View &of_gate = gate->gate, &up = gate->up;
    const uint32_t step = word(step_of_rows(of_gate, x.columns));
    const uint32_t rows_of_gate[] = {word(x.count()), word(of_gate.offset), 0, step};
    std::ranges::copy(rows_of_gate, push_words.begin() + 1);
    for (const int64_t each : {of_gate.strides[3], up.offset, step_of_rows(up, x.columns), up.strides[3]})
      push_words.push_back(word(each));
    for (const float each : {gate->alpha, gate->limit}) push_words.push_back(word(each));
  }
  return push({.shader = Shader::quantize,
               .constants = std::move(constants),
               .groups = spread(x.count() * parts),
               .bindings = std::move(bindings),
               .writes = 0b111100,
               .push = std::move(push_words)});
}

// What this node reads, shaders take for other memory than what that one writes.
bool Planner::is_overwritten_by(const GraphNode& next) const {
  const auto slot_of = [&](const GraphView& view) {
    const bool is_scratch = view.value >= 0 && value_of(view).kind == fb::ValueKind::scratch;
    return is_scratch ? std::optional(value_of(view).slot) : std::nullopt;
  };
  for (const GraphView& output : next.outputs) {
    const auto is_same = [&](const GraphView& view) { return slot_of(view) && slot_of(view) == slot_of(output); };
    if (std::ranges::any_of(node_->inputs, is_same) || std::ranges::any_of(node_->outputs, is_same)) return true;
  }
  return false;
}

std::optional<Planner::Quantized> Planner::rounded_by_last(const View& y, uint32_t lanes, int64_t shared_bytes) {
  const size_t own = node_index_;
  if (own + 1 >= graph_.nodes.size() || y.count() > kMostRoundedByLast) return std::nullopt;
  const GraphNode& next = graph_.nodes[own + 1];
  const bool rounds = next.op == fb::Op::quantize || next.op == fb::Op::quantize_groups;
  if (!rounds || next.inputs.empty()) return std::nullopt;
  if (next.inputs[0].value != node_->outputs[0].value) return std::nullopt;
  if (is_overwritten_by(next)) return std::nullopt;
  begin(own + 1);
  Result<Quantized> made = quantized_of(lanes, shared_bytes);
  begin(own);
  // Where something is wrong with the next node, that is said when its turn has come.
  if (!made.ok() || made->x.count() != 1 || made->x.view.offset != 0 || made->x.columns > y.count())
    return std::nullopt;
  done_ = own + 2;
  return *std::move(made);
}

std::optional<Planner::Quantized> Planner::rounded_by_experts(const Product& product, uint32_t lanes,
                                                              int64_t shared_bytes) {
  const size_t own = node_index_;
  if (tokens_ != 1 || own + 2 >= graph_.nodes.size() || graph_.nodes[own + 1].op != fb::Op::map) return std::nullopt;
  begin(own + 1);
  std::optional<Gate> gate = own_gate();
  begin(own);
  if (!gate || is_overwritten_by(graph_.nodes[own + 2])) return std::nullopt;
  begin(own + 2);
  Result<Quantized> made = quantized_of(lanes, shared_bytes);
  begin(own);
  if (!made.ok() || made->x.count() != product.rows || made->x.columns > kMostRoundedByLast) return std::nullopt;
  const auto is_of_row = [&](const View& view) {
    return view.value == product.y.value && (product.rows == 1 || step_of_rows(view, made->x.columns) == product.out);
  };
  if (!is_of_row(gate->gate) || !is_of_row(gate->up) || gate->gate.strides[3] != gate->up.strides[3])
    return std::nullopt;
  made->gate = std::move(gate);
  done_ = own + 3;
  return *std::move(made);
}

void Planner::add_gate_words(const Gate& gate, Dispatch* dispatch) {
  dispatch->constants.resize(kGateConstant);
  for (const uint32_t each : {gate.function + 1, word(gate.gate.strides[3])}) dispatch->constants.push_back(each);
  dispatch->push.resize(kGateWord);
  for (const int64_t each : {gate.gate.offset, gate.up.offset}) dispatch->push.push_back(word(each));
  for (const float each : {gate.alpha, gate.limit}) dispatch->push.push_back(word(each));
}

void Planner::add_rounding(const std::optional<Quantized>& rounding, const View& y, int64_t num_counters,
                           Dispatch* dispatch, size_t first_word) {
  const auto add = [&](const Bound& seen, bool is_written) {
    dispatch->writes |= is_written ? 1u << dispatch->bindings.size() : 0;
    dispatch->bindings.push_back(seen.kind == Bind::none ? bound(y) : seen);
  };
  const Quantized none{.outputs = std::vector<Bound>(3)};
  const Quantized& made = rounding ? *rounding : none;
  add(made.weight, false);
  for (const Bound& each : made.outputs) add(each, true);
  add(made.turned, true);
  add(num_counters > 0 ? counters(num_counters, &plan_) : Bound(), true);
  if (!rounding) return;
  dispatch->constants.resize(kRoundingConstants);
  dispatch->constants.insert(dispatch->constants.end(), made.constants.begin(), made.constants.end());
  dispatch->constants.push_back(1);
  dispatch->push.resize(std::max(dispatch->push.size(), first_word + made.push.size()));
  std::ranges::copy(made.push, dispatch->push.begin() + static_cast<ptrdiff_t>(first_word));
  if (made.gate) add_gate_words(*made.gate, dispatch);
}

Result<Planner::Product> Planner::product_of(size_t first, bool only_tiles) const {
  Product made;
  MOTE_RETURN_IF_ERROR(integer_below(0, kGates));
  made.gate = word(node_->integers[0]);
  const bool is_of_heads = node_->integers[1] == kOfHeads;
  if (!is_of_heads) MOTE_RETURN_IF_ERROR(integer_below(1, kMaxPairs));
  made.pairs = is_of_heads ? 1 : node_->integers[1];
  if (made.pairs != 0 && made.gate != 0) return invalid("has experts and a gate");
  MOTE_ASSIGN(made.weight, matrix("weight", node_->inputs[first], only_tiles, made.pairs != 0 ? 3 : 2));
  made.weight_index = value_of(node_->inputs[first]).weight;
  const int64_t rows_of_weight = made.weight->tensor.size(-2);
  made.columns = made.weight->tensor.size(-1);
  if (made.gate != 0 && rows_of_weight % 2 != 0) return invalid("weight: must have as many gates as others");
  made.out = made.gate != 0 ? rows_of_weight / 2 : rows_of_weight;
  MOTE_REQUIRE(made.gate == 0 || made.weight->pieces.size() == 1, Code::kUnsupportedBackend,
               "%s.nodes[%zu] (%s): the weight is larger than what the GPU binds at once", graph_.place.c_str(),
               node_index_, fb::EnumNameOp(node_->op));
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], 0));
  if (y.count() % made.out != 0) return invalid("outputs[0]: must be rows of %lld", static_cast<long long>(made.out));
  made.rows = y.count() / made.out;
  made.y = y;
  const int64_t experts = made.pairs != 0 ? made.weight->tensor.size(0) : 1;
  MOTE_ASSIGN(made.bias, parameter("bias", node_->inputs[first + 1], experts * rows_of_weight));
  if (is_of_heads) {
    made.heads = experts;
    if (node_->inputs[first + 2].value >= 0 || made.rows % made.heads != 0) return invalid("weight: is of other heads");
  } else if (made.pairs != 0) {
    if (node_->inputs[first + 2].value < 0 || made.rows % made.pairs != 0) return invalid("experts: are absent");
    MOTE_ASSIGN(const View chosen, integers("experts", node_->inputs[first + 2]));
    if (chosen.count() != made.rows) return invalid("experts: must be one for each row of the output");
    made.residual = bound(chosen);
  } else if (node_->inputs[first + 2].value >= 0) {
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

int64_t Planner::macs_of(const Product& product, const WeightPiece& part) {
  return product.rows * part.rows * product.columns;
}

std::vector<uint32_t> Planner::product_words(const Product& product, const WeightPiece& piece,
                                             int64_t step_to_up) const {
  const Tensor& tensor = product.weight->tensor;
  const bool has_experts = product.pairs != 0;
  const int64_t first = has_experts ? 0 : piece.first_row, rows = product.rows_of(piece);
  std::vector<uint32_t> words{word(product.columns), word(product.rows),      word(first + rows),      word(first),
                              word(product.out),     product.residual_offset, product.residual_stride, word(step_to_up),
                              word(tensor.size(-2))};
  if (!has_experts) return words;
  const int64_t stored = product.weight->stack_rows;
  words.resize(kExpertWord);
  for (const int64_t each : {piece.first_row / stored, piece.rows / stored, tensor.size(0),
                             tensor.bits != 0 ? stored / kTileRows : stored, tensor.size(1)}) {
    words.push_back(word(each));
  }
  return words;
}

ProductForm Planner::form_of(const Product& product, bool in_groups) const {
  ProductForm form = calls_form();
  if (in_groups) form = {form.uses & gpu::GpuFeature::kDot, device_.is_cpu ? 2u : 16u, 1, 8, 1};
  if (product.pairs != 0)
    form = without_others({{}, form}, form.uses.without(gpu::GpuFeature::kStaging), device_.is_cpu).many;
  const int64_t rows = product.pairs != 0 ? outputs_together(product) : product.rows;
  return fitted(form, product.weight->tensor.bits, rows, device_.limits, device_.is_cpu);
}

// What is of one expert need not be of the next one, unless many are.
int64_t Planner::outputs_together(const Product& product) {
  constexpr int64_t kMostExperts = 1 << 10;  // that order_rows.comp counts
  const int64_t experts = product.weight->tensor.size(0);
  return experts > kMostExperts ? 1 : tokens_together(product.rows / experts);
}

int64_t Planner::places_of(const Product& product, int64_t together) {
  const int64_t experts = product.weight->tensor.size(0);
  if (product.heads != 0) return ceil_div(product.rows / experts, together) * together * experts;
  return ceil_div(product.rows + experts * (together - 1), together) * together;
}

Result<Bound> Planner::add_order(const Product& product, int64_t together) {
  if (product.pairs == 0 || product.heads != 0 || together == 1) return Bound{};
  const int64_t places = places_of(product, together), experts = product.weight->tensor.size(0);
  plan_.parts_bytes = std::max(plan_.parts_bytes, static_cast<uint64_t>(4 * places));
  MOTE_RETURN_IF_ERROR(push({.shader = Shader::order_rows,
                             .constants = {word(experts), word(together)},
                             .groups = {word(experts), 1, 1},
                             .bindings = {product.residual, {Bind::parts}},
                             .writes = 0b10,
                             .push = {word(product.rows), word(places)},
                             .cost = {.bytes = 4 * experts * product.rows}}));
  return Bound{Bind::parts};
}

Status Planner::add_product(bool in_groups) {
  MOTE_ASSIGN(const Product product, product_of(3, true));
  const Tensor& tensor = product.weight->tensor;
  MOTE_RETURN_IF_ERROR(check_codes(node_->inputs, product.inputs(), product.columns, in_groups));
  if (product.gate != 0 && product.out % kTileRows != 0) return invalid("weight: gates must be a multiple of 16");
  if (!in_groups && !(tensor.scales == TileScales{})) return invalid("weight: must have no float16 scales");
  const ProductForm form = form_of(product, in_groups);
  const uint32_t together = form.tokens * (form.uses.has(gpu::GpuFeature::kStaging) ? form.splits : 1);
  MOTE_ASSIGN(const Bound order, add_order(product, together));
  const bool is_ordered = order.kind != Bind::none;
  const int64_t places = is_ordered || product.heads != 0 ? places_of(product, together) : product.rows;
  const bool is_in_piece = product.weight->pieces.size() == 1;
  for (size_t piece = 0; piece < product.weight->pieces.size(); ++piece) {
    const WeightPiece& part = product.weight->pieces[piece];
    const int64_t rows = product.rows_of(part);
    std::vector<Bound> bindings;
    for (size_t i = 0; i < 3; ++i) bindings.push_back(bound(static_cast<uint32_t>(node_->inputs[i].value)));
    bindings.push_back({Bind::weight, product.weight_index, word(piece)});
    bindings.push_back(in_groups ? Bound() : Bound{Bind::row_sums, product.weight_index, 0});
    for (const Bound& each : {product.bias, product.residual, bound(product.y)}) bindings.push_back(each);
    const unsigned writes = 1u << (bindings.size() - 1);
    Dispatch dispatch{
        .shader = in_groups ? group_product_shader(form, false) : product_shader(form),
        .constants = with_tiles({tensor.bits, word(tensor.group_size), form.tokens, product.bias.kind != Bind::none,
                                 product.has_residual(), product.gate, form.invocations(), form.blocks, form.splits},
                                tensor, product.pairs, form.stage, is_ordered, product.heads),
        .groups = {word(ceil_div(rows, kTileRows * form.blocks)), word(ceil_div(places, together)), 1},
        .bindings = std::move(bindings),
        .writes = writes,
        .push = product_words(product, part, product.out / kTileRows),
        .cost = {0, macs_of(product, part)}};
    std::optional<Quantized> rounding;
    const int64_t shared_bytes = shared_bytes_of(form, tensor.bits);
    if (is_in_piece && product.rows == 1 && product.pairs == 0) {
      rounding = rounded_by_last(product.y, form.invocations(), shared_bytes);
    } else if (is_in_piece && product.pairs != 0 && product.heads == 0 && together == 1) {
      rounding = rounded_by_experts(product, form.invocations(), shared_bytes);
    }
    if (rounding) {
      dispatch.shader = in_groups ? group_product_shader(form, true) : rounding_product_shader(form);
      dispatch.push.resize(std::max(dispatch.push.size(), kEndedWord + 1));
      dispatch.push[kEndedWord] = dispatch.groups[0];
      add_rounding(rounding, product.y, product.rows, &dispatch, kEndedWord + 1);
    } else {
      dispatch.bindings.push_back(order);
    }
    dispatch.push = with_codebook(std::move(dispatch.push), tensor);
    MOTE_RETURN_IF_ERROR(push(std::move(dispatch)));
  }
  return {};
}

Status Planner::add_float_product() {
  MOTE_ASSIGN(const Product product, product_of(1, false));
  MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
  if (x.columns != product.columns || x.count() != product.inputs())
    return invalid("inputs[0]: does not fit the weight");
  const Tensor& tensor = product.weight->tensor;
  const uint32_t together = product.pairs != 0 ? word(outputs_together(product)) : tokens_together(product.rows);
  MOTE_ASSIGN(const Bound order, add_order(product, together));
  const bool is_ordered = order.kind != Bind::none;
  const int64_t places = is_ordered || product.heads != 0 ? places_of(product, together) : product.rows;
  // Of which each workgroup makes something.
  const bool has_rounding = (product.pairs == 0 || product.heads != 0) && product.weight->pieces.size() == 1 &&
                            tensor.scales.codebook == nullptr;
  for (size_t piece = 0; piece < product.weight->pieces.size(); ++piece) {
    const WeightPiece& part = product.weight->pieces[piece];
    const int64_t rows = product.rows_of(part);
    std::vector<uint32_t> words = product_words(product, part, product.out);
    const uint32_t of_x[] = {word(x.inner), word(x.view.offset), word(x.view.strides[0]), word(x.view.strides[1])};
    words.resize(std::max<size_t>(words.size(), 12));
    std::ranges::copy(of_x, words.begin() + 8);
    Dispatch dispatch{
        .shader = Shader::float_product,
        .constants = with_tiles({bits_of(tensor), group_of(tensor), together, product.bias.kind != Bind::none,
                                 product.has_residual(), product.gate, dense_kind(tensor)},
                                tensor, product.pairs, 1, is_ordered, product.heads),
        .groups = {word(rows), word(ceil_div(places, together)), 1},
        .bindings = {bound(x.view),
                     {Bind::weight, product.weight_index, word(piece)},
                     product.bias,
                     product.residual,
                     bound(product.y)},
        .writes = 0b10000,
        .push = std::move(words),
        .cost = {0, macs_of(product, part)}};
    std::optional<Quantized> rounding;
    if (has_rounding) rounding = rounded_by_last(product.y, kLanes, 4 * kLanes * together);
    if (rounding) {
      dispatch.shader = Shader::float_product_rounds;
      dispatch.push.resize(kFloatRoundingWord);
      dispatch.push[kFloatEndedWord] = dispatch.groups[0] * dispatch.groups[1];
      add_rounding(rounding, product.y, 1, &dispatch, kFloatRoundingWord);
    } else {
      dispatch.bindings.push_back(order);
    }
    dispatch.push = with_codebook(std::move(dispatch.push), tensor);
    MOTE_RETURN_IF_ERROR(push(std::move(dispatch)));
  }
  return {};
}

}  // namespace mote::vulkan
