#include "backends/vulkan/graph.h"

#include <algorithm>
#include <array>

#include "kernels/formats.h"

namespace mote::vulkan {
namespace {

constexpr uint32_t kMaxTables = 1 << 20;
constexpr size_t kMaxValues = 1 << 16;
constexpr size_t kMaxOrigin = 1024;
constexpr int64_t kMaxPart = int64_t{1} << 40;
constexpr int32_t kMaxStates = 1 << 16, kMaxHeads = 1 << 12, kMaxWidth = 1 << 10;
constexpr int32_t kMaxRows = 1 << 8, kMaxColumns = 1 << 20;  // of a history
constexpr int32_t kMaxStateFloats = 1 << 28;                 // of a recurrence, and of what is recorded of a token

// What a node of each op has; `required` are the inputs that must be present, a bit each.
struct Signature {
  size_t inputs, outputs, integers, numbers;
  unsigned required;
};
constexpr std::array<Signature, 23> kSignatures = {{
    {2, 1, 0, 0, 0b11},        // embedding
    {2, 2, 1, 1, 0b11},        // rope_table
    {3, 1, 1, 2, 0b1},         // norm
    {2, 4, 3, 2, 0b1},         // quantize: three or four outputs
    {6, 1, 2, 0, 0b1111},      // product
    {4, 1, 2, 0, 0b11},        // float_product
    {3, 1, 1, 0, 0b111},       // rope
    {8, 1, 6, 2, 0b1001},      // attention: one or two outputs; or what was written first
    {3, 1, 1, 2, 0},           // map
    {1, 1, 1, 0, 0b1},         // rotate
    {2, 3, 1, 2, 0b1},         // quantize_groups: or what was written first
    {6, 1, 2, 0, 0b1111},      // group_product
    {1, 1, 1, 0, 0b1},         // reduce
    {1, 1, 1, 0, 0b1},         // softmax
    {1, 2, 2, 0, 0b1},         // top
    {2, 1, 1, 0, 0b11},        // pick
    {3, 1, 1, 0, 0b111},       // scatter
    {2, 1, 0, 0, 0b11},        // matmul
    {3, 1, 1, 0, 0b11},        // short_conv
    {8, 1, 4, 4, 0b1110},      // heads: an output where there are queries
    {5, 1, 1, 0, 0b111},       // linear_attention
    {4, 1, 4, 0, 0b111},       // indexer: or what was written first
    {8, 1, 5, 2, 0b11011111},  // latent_heads
}};

// At least 0 for every number of tokens from 1 on.
bool is_bounded(const LinearSize& size) {
  return size.tokens >= 0 && size.tokens <= kMaxPart && size.constant >= -kMaxPart && size.constant <= kMaxPart &&
         size.at(1) >= 0;
}

class Verifier {
 public:
  explicit Verifier(const DelegatePart& part) : part_(part), blob_(part.blob.begin(), part.blob.end()) {}

  Result<Graph> verify() {
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(blob_.data()), blob_.size(), 16, kMaxTables);
    if (blob_.size() < 12 || !fb::VerifyGraphBuffer(verifier)) return invalid("", "is not a graph for Vulkan");
    const fb::Graph& graph = *fb::GetGraph(blob_.data());
    if (std::max(graph.values()->size(), graph.nodes()->size()) > kMaxValues || graph.slots()->size() > kMaxValues) {
      return invalid("", "has %u values and %u nodes: must be at most %zu", graph.values()->size(),
                     graph.nodes()->size(), kMaxValues);
    }
    graph_.place = part_.place;
    graph_.num_weights = part_.weights.size();
    for (const fb::Dim* slot : *graph.slots()) {
      graph_.slots.emplace_back();
      MOTE_RETURN_IF_ERROR(copy(format("slots[%zu]", graph_.slots.size() - 1), slot, &graph_.slots.back()));
    }
    for (const fb::Value* value : *graph.values()) MOTE_RETURN_IF_ERROR(add_value(*value));
    for (const fb::Cache* cache : *graph.caches()) MOTE_RETURN_IF_ERROR(add_cache(*cache));
    if (graph.histories() != nullptr) {
      for (const fb::History* history : *graph.histories()) MOTE_RETURN_IF_ERROR(add_history(*history));
    }
    if (graph.recurrences() != nullptr) {
      for (const fb::Recurrence* each : *graph.recurrences()) MOTE_RETURN_IF_ERROR(add_recurrence(*each));
    }
    for (const fb::Node* node : *graph.nodes()) MOTE_RETURN_IF_ERROR(add_node(*node));
    return std::move(graph_);
  }

 private:
  [[MOTE_PRINTF(3, 4)]] Status invalid(const std::string& field, const char* pattern, ...) const {
    va_list arguments;
    va_start(arguments, pattern);
    const std::string text = format_list(pattern, arguments);
    va_end(arguments);
    return Status(Code::kInvalidProgram, part_.place + (field.empty() ? "" : "." + field) + ": " + text);
  }

  Status copy(const std::string& place, const fb::Dim* from, LinearSize* to) const {
    if (from != nullptr) *to = {from->tokens(), from->constant()};
    if (!is_bounded(*to)) {
      return invalid(place, "%lld * T + %lld: must be at least 0 for every T, its parts at most 2^40",
                     static_cast<long long>(to->tokens), static_cast<long long>(to->constant));
    }
    return {};
  }

  Status add_value(const fb::Value& from) {
    const std::string place = format("values[%zu]", graph_.values.size());
    GraphValue value{.kind = from.kind(), .content = from.content()};
    if (value.kind > fb::ValueKind::MAX || value.content > fb::Content::MAX)
      return invalid(place, "is of no known kind");
    MOTE_RETURN_IF_ERROR(copy(place + ".bytes", from.bytes(), &value.bytes));
    if (value.kind == fb::ValueKind::scratch) {
      if (from.slot() < 0 || static_cast<size_t>(from.slot()) >= graph_.slots.size()) {
        return invalid(place, "slot = %d: must be below %zu", from.slot(), graph_.slots.size());
      }
      value.slot = static_cast<uint32_t>(from.slot());
      const LinearSize& slot = graph_.slots[value.slot];
      if (slot.tokens < value.bytes.tokens || slot.constant < value.bytes.constant) {
        return invalid(place, "bytes: do not fit slots[%u]", value.slot);
      }
    }
    if (value.kind == fb::ValueKind::weight) MOTE_RETURN_IF_ERROR(check_weight(place, from, &value));
    const bool is_argument = value.kind == fb::ValueKind::input || value.kind == fb::ValueKind::output;
    if (is_argument && value.content > fb::Content::int64 && value.content != fb::Content::boolean)
      return invalid(place, "an argument must be float32, int64 or boolean");
    if (value.kind == fb::ValueKind::input) graph_.inputs.push_back(static_cast<uint32_t>(graph_.values.size()));
    if (value.kind == fb::ValueKind::output) graph_.outputs.push_back(static_cast<uint32_t>(graph_.values.size()));
    graph_.values.push_back(value);
    return {};
  }

  Status check_weight(const std::string& place, const fb::Value& from, GraphValue* value) const {
    if (from.weight() < 0 || static_cast<size_t>(from.weight()) >= part_.weights.size()) {
      return invalid(place, "weight = %d: must be below %zu", from.weight(), part_.weights.size());
    }
    value->weight = static_cast<uint32_t>(from.weight());
    const Tensor& tensor = part_.weights[value->weight].tensor;
    bool fits = false;
    switch (value->content) {
      case fb::Content::tiles: fits = tensor.bits != 0 && (tensor.rank == 2 || tensor.rank == 3); break;
      case fb::Content::dense:
        fits = tensor.bits == 0 && (tensor.rank == 2 || tensor.rank == 3) &&
               (tensor.dtype == DType::kFloat32 || tensor.dtype == DType::kFloat16 || tensor.dtype == DType::kBFloat16);
        break;
      case fb::Content::float32: fits = tensor.bits == 0 && tensor.dtype == DType::kFloat32; break;
      case fb::Content::int64: fits = tensor.bits == 0 && tensor.dtype == DType::kInt64; break;
      case fb::Content::boolean: fits = tensor.bits == 0 && tensor.dtype == DType::kBool; break;
      default: break;
    }
    if (!fits) return invalid(place, "weight = %d: is not of the content that the value says", from.weight());
    return {};
  }

  Status add_cache(const fb::Cache& from) {
    const GraphCache cache{from.state(), from.num_heads(), from.head_dim(), from.value_head_dim()};
    const auto is_width = [](int32_t width) { return width >= 2 && width <= kMaxWidth && width % 2 == 0; };
    if (cache.state < 0 || cache.state >= kMaxStates || cache.num_heads < 1 || cache.num_heads > kMaxHeads ||
        !is_width(cache.head_dim) ||
        !(is_width(cache.value_head_dim) || cache.value_head_dim == 0 || cache.value_head_dim == 1)) {
      return invalid(format("caches[%zu]", graph_.caches.size()), "has no heads, or widths that are odd or above %d",
                     kMaxWidth);
    }
    for (const GraphCache& other : graph_.caches) {
      if (other.state == cache.state) return invalid("caches", "has state %d twice", cache.state);
    }
    graph_.caches.push_back(cache);
    return {};
  }

  Status add_history(const fb::History& from) {
    const GraphHistory history{from.state(), from.rows(), from.columns()};
    const auto is_within = [](int32_t number, int32_t most) { return number >= 1 && number <= most; };
    if (history.state < 0 || history.state >= kMaxStates || !is_within(history.rows, kMaxRows) ||
        !is_within(history.columns, kMaxColumns)) {
      return invalid(format("histories[%zu]", graph_.histories.size()), "has no rows or columns, or above %d and %d",
                     kMaxRows, kMaxColumns);
    }
    for (const GraphHistory& other : graph_.histories) {
      if (other.state == history.state) return invalid("histories", "has state %d twice", history.state);
    }
    graph_.histories.push_back(history);
    return {};
  }

  Status add_recurrence(const fb::Recurrence& from) {
    const GraphRecurrence made{from.state(), from.key_heads(), from.heads(), from.rows(), from.width(), from.decays()};
    const std::string place = format("recurrences[%zu]", graph_.recurrences.size());
    const auto is_within = [](int32_t number, int32_t most) { return number >= 1 && number <= most; };
    if (made.state < 0 || made.state >= kMaxStates || !is_within(made.heads, kMaxColumns) ||
        !is_within(made.key_heads, made.heads) || made.heads % made.key_heads != 0 ||
        !is_within(made.rows, kMaxColumns) || !is_within(made.width, kMaxWidth) ||
        (made.decays != 0 && made.decays != 1 && made.decays != made.width)) {
      return invalid(place, "has no heads, rows or width, or key_heads or decays that do not go with them");
    }
    if (made.floats() > kMaxStateFloats || made.recorded_floats() > kMaxStateFloats)
      return invalid(place, "has more than %d elements", kMaxStateFloats);
    for (const GraphRecurrence& other : graph_.recurrences) {
      if (other.state == made.state) return invalid("recurrences", "has state %d twice", made.state);
    }
    graph_.recurrences.push_back(made);
    return {};
  }

  Status add_view(const std::string& place, const fb::View& from, GraphView* view) const {
    view->value = from.value();
    if (view->value == -1) return {};
    if (view->value < 0 || static_cast<size_t>(view->value) >= graph_.values.size()) {
      return invalid(place, "value = %d: must be below %zu", view->value, graph_.values.size());
    }
    const size_t rank = from.sizes() == nullptr ? 0 : from.sizes()->size();
    if (rank > kMaxRank || rank != (from.strides() == nullptr ? 0 : from.strides()->size())) {
      return invalid(place, "must have as many strides as sizes, at most %zu", kMaxRank);
    }
    MOTE_RETURN_IF_ERROR(copy(place + ".offset", from.offset(), &view->offset));
    view->sizes.resize(rank);
    view->strides.resize(rank);
    for (size_t i = 0; i < rank; ++i) {
      MOTE_RETURN_IF_ERROR(copy(place + ".sizes", from.sizes()->Get(static_cast<uint32_t>(i)), &view->sizes[i]));
      MOTE_RETURN_IF_ERROR(copy(place + ".strides", from.strides()->Get(static_cast<uint32_t>(i)), &view->strides[i]));
    }
    return {};
  }

  Status add_node(const fb::Node& from) {
    const std::string place = format("nodes[%zu]", graph_.nodes.size());
    if (from.op() > fb::Op::MAX) return invalid(place, "op = %d: is not known", static_cast<int>(from.op()));
    const Signature& has = kSignatures[static_cast<size_t>(from.op())];
    const auto length = [](const auto* list) -> size_t { return list == nullptr ? 0 : list->size(); };
    const bool has_outputs = length(from.outputs()) == has.outputs ||
                             (from.op() == fb::Op::quantize && length(from.outputs()) == 3) ||
                             (from.op() == fb::Op::attention && length(from.outputs()) == 2) ||
                             (from.op() == fb::Op::heads && length(from.outputs()) == 0);
    const bool is_first_attention =
        from.op() == fb::Op::attention && length(from.inputs()) == 6 && length(from.integers()) == 4;
    const bool is_first_rounding = from.op() == fb::Op::quantize_groups && length(from.inputs()) == 1 &&
                                   length(from.integers()) == 0 && length(from.numbers()) == 0;
    const bool has_stride = from.op() == fb::Op::attention || from.op() == fb::Op::indexer;
    const bool has_integers =
        length(from.integers()) == has.integers || (has_stride && length(from.integers()) + 1 == has.integers);
    const bool has_inputs = length(from.inputs()) == has.inputs && has_integers;
    const bool has_numbers = length(from.numbers()) == has.numbers || is_first_rounding;
    if (!(has_inputs || is_first_attention || is_first_rounding) || !has_outputs || !has_numbers) {
      return invalid(place, "has other numbers of operands than %s takes", fb::EnumNameOp(from.op()));
    }
    GraphNode node{.op = from.op()};
    for (const auto& [name, views, to] :
         {std::tuple("inputs", from.inputs(), &node.inputs), std::tuple("outputs", from.outputs(), &node.outputs)}) {
      for (const fb::View* view : *views) {
        to->emplace_back();
        const std::string at = place + format(".%s[%zu]", name, to->size() - 1);
        MOTE_RETURN_IF_ERROR(add_view(at, *view, &to->back()));
      }
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if ((has.required >> i & 1) != 0 && node.inputs[i].value < 0) return invalid(place, "inputs[%zu]: is absent", i);
    }
    for (const GraphView& output : node.outputs) {
      if (output.value < 0) return invalid(place, "outputs: one is absent");
      const fb::ValueKind kind = graph_.values[static_cast<size_t>(output.value)].kind;
      if (kind != fb::ValueKind::scratch && kind != fb::ValueKind::output)
        return invalid(place, "writes what is read only");
    }
    if (from.origin() != nullptr) {
      if (from.origin()->size() > kMaxOrigin) return invalid(place, "origin: is longer than %zu bytes", kMaxOrigin);
      node.origin = from.origin()->str();
    }
    if (from.integers() != nullptr) node.integers.assign(from.integers()->begin(), from.integers()->end());
    if (from.numbers() != nullptr) node.numbers.assign(from.numbers()->begin(), from.numbers()->end());
    node.inputs.resize(has.inputs);
    node.integers.resize(has.integers);
    node.numbers.resize(has.numbers);
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  const DelegatePart& part_;
  const std::vector<std::byte> blob_;  // a copy: no other process can change it once it is verified
  Graph graph_;
};

}  // namespace

Result<Graph> verify_graph(const DelegatePart& part) { return Verifier(part).verify(); }

}  // namespace mote::vulkan
